/**
 * A tiny Llama as a GGUF file, and its logits computed here with 64-bit numbers, in the order in which
 * the file has its numbers: the halves of each head of queries and keys alternate.
 */
import { joinBytes } from '../../src/values/bytes.ts'
import { bytesOf, type Written, writeGguf, type WrittenTensor } from './gguf.ts'
import { createChance } from './random.ts'

const [HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, FEED_FORWARD] = [64, 4, 2, 16, 96]

/** Number of tokens of a model without a tokenizer. */
const VOCABULARY = 64

/** Number of layers. */
export const LAYERS = 2
const EPSILON = 1e-5
const BASE = 10_000

/** A matrix by rows, with the values that the file has. */
interface Matrix {
  columns: number
  values: Float64Array
}

/** Types of matrices in the file, by their numbers, with the way to write random ones. */
const TYPES = {
  F32: { number: 0, write: writeF32 },
  Q8_0: { number: 8, write: writeQ8 },
  Q4_0: { number: 2, write: writeQ4 },
  Q4_1: { number: 3, write: writeQ4WithOffset },
} as const

export type MatrixType = keyof typeof TYPES

type Random = () => number

/** Bits of the 16-bit float of a power of two from 2^-14 to 1. */
const halfPower = (exponent: number): Uint8Array => bytesOf(Uint16Array.of((exponent + 15) << 10))

function writeF32(random: Random, count: number) {
  const values = Float32Array.from({ length: count }, () => random() * 0.4 - 0.2)
  return { bytes: bytesOf(values), values: Float64Array.from(values) }
}

function writeQ8(random: Random, count: number) {
  return writeBlocks(count, () => {
    const exponent = -9 - Math.floor(random() * 2)
    const codes = Int8Array.from({ length: 32 }, () => Math.floor(random() * 256) - 128)
    const values = Array.from(codes, (code) => code * 2 ** exponent)
    return { bytes: [halfPower(exponent), bytesOf(codes)], values }
  })
}

function writeQ4(random: Random, count: number) {
  return writeBlocks(count, () => {
    const exponent = -5 - Math.floor(random() * 2)
    const codes = Array.from({ length: 32 }, () => Math.floor(random() * 16))
    const values = codes.map((code) => (code - 8) * 2 ** exponent)
    return { bytes: [halfPower(exponent), halfBytes(codes)], values }
  })
}

/** Offsets, with their bits as 16-bit floats. */
const OFFSETS = [
  [-0.0625, 0xac00],
  [-0.125, 0xb000],
  [-0.15625, 0xb100],
] as const

function writeQ4WithOffset(random: Random, count: number) {
  return writeBlocks(count, () => {
    const [offset, bits] = OFFSETS[Math.floor(random() * OFFSETS.length)] ?? OFFSETS[0]
    const codes = Array.from({ length: 32 }, () => Math.floor(random() * 16))
    const values = codes.map((code) => code * 2 ** -6 + offset)
    return { bytes: [halfPower(-6), bytesOf(Uint16Array.of(bits)), halfBytes(codes)], values }
  })
}

/** Packs 32 integers of 4 bits: the first 16 into the low halves, the others into the high ones. */
const halfBytes = (codes: readonly number[]): Uint8Array =>
  Uint8Array.from({ length: 16 }, (_, at) => (codes[at] ?? 0) | ((codes[at + 16] ?? 0) << 4))

function writeBlocks(
  count: number,
  write: () => { bytes: readonly Uint8Array[]; values: readonly number[] },
) {
  const blocks = Array.from({ length: count / 32 }, write)
  return {
    bytes: joinBytes(blocks.flatMap(({ bytes }) => bytes)),
    values: Float64Array.from(blocks.flatMap(({ values }) => values)),
  }
}

/**
 * Returns the file of a tiny model, its contents, and a function that returns the logits of each
 * token. `metadata` takes the place of that of the file. With a tokenizer, it says the number of
 * tokens.
 */
export function createGgufDecoder(type: MatrixType, metadata = METADATA) {
  const tokens = metadata['tokenizer.ggml.tokens']
  const vocabulary = tokens && 'texts' in tokens ? tokens.texts.length : VOCABULARY
  const random = chanceOf(type)
  const matrices = new Map<string, Matrix>()
  const tensors: WrittenTensor[] = []
  const add = (name: string, columns: number, rows: number, as: MatrixType): void => {
    const { number, write } = TYPES[as]
    const { bytes, values } = write(random, columns * rows)
    const shape = rows === 1 ? [columns] : [columns, rows]
    tensors.push({ name: `${name}.weight`, shape, type: number, data: bytes })
    matrices.set(name, { columns, values })
  }
  const addNorm = (name: string): void => {
    const values = Float32Array.from({ length: HIDDEN }, () => 0.5 + random())
    tensors.push({ name: `${name}.weight`, shape: [HIDDEN], type: 0, data: bytesOf(values) })
    matrices.set(name, { columns: HIDDEN, values: Float64Array.from(values) })
  }
  add('token_embd', HIDDEN, vocabulary, type)
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const block = `blk.${layer}`
    addNorm(`${block}.attn_norm`)
    add(`${block}.attn_q`, HIDDEN, HEADS * HEAD_SIZE, type)
    add(`${block}.attn_k`, HIDDEN, KV_HEADS * HEAD_SIZE, type)
    add(`${block}.attn_v`, HIDDEN, KV_HEADS * HEAD_SIZE, type)
    add(`${block}.attn_output`, HEADS * HEAD_SIZE, HIDDEN, type)
    addNorm(`${block}.ffn_norm`)
    add(`${block}.ffn_gate`, HIDDEN, FEED_FORWARD, type)
    add(`${block}.ffn_up`, HIDDEN, FEED_FORWARD, type)
    add(`${block}.ffn_down`, FEED_FORWARD, HIDDEN, type)
  }
  addNorm('output_norm')
  const contents = { metadata, tensors }
  return { file: writeGguf(contents), contents, logits: compute.bind(null, matrices) }
}

const chanceOf = (type: MatrixType): Random => {
  const { below } = createChance(Object.keys(TYPES).indexOf(type) + 1)
  return () => below(2 ** 20) / 2 ** 20
}

/** Metadata of the file. */
export const METADATA: Readonly<Record<string, Written>> = {
  'general.architecture': { text: 'llama' },
  'llama.block_count': { uint32: LAYERS },
  'llama.context_length': { uint32: 128 },
  'llama.embedding_length': { uint32: HIDDEN },
  'llama.feed_forward_length': { uint32: FEED_FORWARD },
  'llama.attention.head_count': { uint32: HEADS },
  'llama.attention.head_count_kv': { uint32: KV_HEADS },
  'llama.rope.freq_base': { float32: BASE },
  'llama.rope.dimension_count': { uint32: HEAD_SIZE },
  'llama.attention.layer_norm_rms_epsilon': { float32: EPSILON },
}

type Vector = number[]

/** Returns the logits of each token. */
function compute(matrices: ReadonlyMap<string, Matrix>, tokens: readonly number[]): Vector[] {
  const get = (name: string): Matrix =>
    matrices.get(name) ?? { columns: 0, values: new Float64Array() }
  const rowOf = ({ columns, values }: Matrix, row: number): Vector => [
    ...values.subarray(row * columns, (row + 1) * columns),
  ]
  const dot = (one: Vector, other: Vector): number =>
    one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)
  const multiply = (name: string, input: Vector): Vector => {
    const matrix = get(name)
    const rows = matrix.values.length / matrix.columns
    return Array.from({ length: rows }, (_, row) => dot(rowOf(matrix, row), input))
  }
  const norm = (name: string, input: Vector): Vector => {
    const root = Math.sqrt(dot(input, input) / input.length + EPSILON)
    const weights = get(name).values
    return input.map((value, at) => (value / root) * (weights[at] ?? 0))
  }
  const plus = (one: Vector, other: Vector): Vector =>
    one.map((value, at) => value + (other[at] ?? 0))
  const headOf = (values: Vector, head: number): Vector =>
    values.slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)

  let rows = tokens.map((token) => rowOf(get('token_embd'), token))
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const block = `blk.${layer}`
    const inputs = rows.map((row) => norm(`${block}.attn_norm`, row))
    const queries = inputs.map((row, at) => rotate(multiply(`${block}.attn_q`, row), at))
    const keys = inputs.map((row, at) => rotate(multiply(`${block}.attn_k`, row), at))
    const values = inputs.map((row) => multiply(`${block}.attn_v`, row))
    const attended = queries.map((query, at) =>
      Array.from({ length: HEADS }, (_, head) => {
        const group = Math.floor(head / (HEADS / KV_HEADS))
        const own = headOf(query, head)
        const scores = keys
          .slice(0, at + 1)
          .map((key) => Math.exp(dot(own, headOf(key, group)) / Math.sqrt(HEAD_SIZE)))
        const sum = scores.reduce((all, score) => all + score, 0)
        return scores.reduce<Vector>(
          (found, score, place) =>
            plus(
              found,
              headOf(values[place] ?? [], group).map((value) => (value * score) / sum),
            ),
          Array<number>(HEAD_SIZE).fill(0),
        )
      }).flat(),
    )
    rows = rows.map((row, at) => plus(row, multiply(`${block}.attn_output`, attended[at] ?? [])))
    rows = rows.map((row) => {
      const input = norm(`${block}.ffn_norm`, row)
      const gate = multiply(`${block}.ffn_gate`, input)
      const up = multiply(`${block}.ffn_up`, input)
      const middle = gate.map((value, at) => (value / (1 + Math.exp(-value))) * (up[at] ?? 0))
      return plus(row, multiply(`${block}.ffn_down`, middle))
    })
  }
  return rows.map((row) => multiply('token_embd', norm('output_norm', row)))
}

/** Rotates neighboring pairs of each head. */
function rotate(values: Vector, position: number): Vector {
  return values.map((value, at) => {
    const pair = Math.floor((at % HEAD_SIZE) / 2)
    const angle = position / BASE ** ((2 * pair) / HEAD_SIZE)
    const other = values[at % 2 === 0 ? at + 1 : at - 1] ?? 0
    return value * Math.cos(angle) + (at % 2 === 0 ? -1 : 1) * other * Math.sin(angle)
  })
}
