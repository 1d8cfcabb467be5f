/** Writes the same models in GGUF, the format of llama.cpp. */
import { closeSync, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { toQ4, toQ8 } from './quantize.ts'
import { type GgufFormat, ggufPath, type Shape, SHAPES, type ShapeName } from './shapes.ts'
import { characterOf } from './tokenizer.ts'
import { drawWeights, transpose, type WeightKind } from './weights.ts'

/** Types of tensors, by their numbers in ggml.h. */
const F32 = 0
const FORMATS = {
  q4_0: { type: 2, quantize: toQ4 },
  q8_0: { type: 8, quantize: toQ8 },
} as const
const VERSION = 3
/** Bytes of which each tensor's place is a multiple: the default of GGUF. */
const ALIGNMENT = 32

interface GgufTensor {
  name: string
  type: number
  /** Inputs and outputs of a matrix, or the length of a vector. */
  shape: number[]
  create(): Uint8Array
}

/**
 * Writes the model, unless it is there. All matrices have the format, the embeddings too. The weights
 * are those of the ONNX files before they are quantized.
 */
export function writeGguf(name: ShapeName, format: GgufFormat, folder: string): void {
  const path = join(folder, ggufPath(format))
  if (existsSync(path)) return
  mkdirSync(folder, { recursive: true })
  const tensors = listTensors(SHAPES[name], format)
  const file = openSync(`${path}.part`, 'w')
  let offset = 0
  const places = tensors.map((tensor) => {
    const place = offset
    offset += align(byteLength(tensor))
    return place
  })
  const head = writeHead(SHAPES[name], tensors, places)
  writeSync(file, head, 0, head.length, 0)
  tensors.forEach((tensor, index) => {
    const bytes = tensor.create()
    writeSync(file, bytes, 0, bytes.length, align(head.length) + (places[index] as number))
  })
  closeSync(file)
  renameSync(`${path}.part`, path)
}

function listTensors(shape: Shape, format: GgufFormat): GgufTensor[] {
  const { hidden, heads, kvHeads, head, feedForward, vocabulary, layers } = shape
  const { type, quantize } = FORMATS[format]
  const matrix = (
    name: string,
    drawn: string,
    [inputs, outputs]: readonly [number, number],
    { kind = 'normal', rotates = false }: { kind?: WeightKind; rotates?: boolean } = {},
  ): GgufTensor => ({
    name: `${name}.weight`,
    type,
    shape: [inputs, outputs],
    create() {
      const rows = transpose(drawWeights(drawn, kind, inputs, outputs), inputs, outputs)
      return quantize(rotates ? interleave(rows, inputs, head) : rows)
    },
  })
  const norm = (name: string): GgufTensor => ({
    name: `${name}.weight`,
    type: F32,
    shape: [hidden],
    create: () => new Uint8Array(new Float32Array(hidden).fill(1).buffer),
  })
  const embeddings: GgufTensor = {
    name: 'token_embd.weight',
    type,
    shape: [hidden, vocabulary],
    create: () => quantize(drawWeights('embed', 'normal', vocabulary, hidden)),
  }
  const blocks = Array.from({ length: layers }, (_, layer) => [
    norm(`blk.${layer}.attn_norm`),
    matrix(`blk.${layer}.attn_q`, `q${layer}`, [hidden, heads * head], { rotates: true }),
    matrix(`blk.${layer}.attn_k`, `k${layer}`, [hidden, kvHeads * head], { rotates: true }),
    matrix(`blk.${layer}.attn_v`, `v${layer}`, [hidden, kvHeads * head]),
    matrix(`blk.${layer}.attn_output`, `o${layer}`, [heads * head, hidden]),
    norm(`blk.${layer}.ffn_norm`),
    matrix(`blk.${layer}.ffn_gate`, `gate${layer}`, [hidden, feedForward]),
    matrix(`blk.${layer}.ffn_up`, `up${layer}`, [hidden, feedForward]),
    matrix(`blk.${layer}.ffn_down`, `down${layer}`, [feedForward, hidden]),
  ])
  const output = matrix('output', 'head', [hidden, vocabulary], { kind: 'head' })
  return [embeddings, ...blocks.flat(), norm('output_norm'), output]
}

/**
 * Reorders the rows of each head: llama.cpp rotates neighbors, and ONNX files a row and the one half a
 * head behind it.
 */
function interleave(rows: Float32Array, length: number, head: number): Float32Array {
  const reordered = new Float32Array(rows.length)
  for (let row = 0; row < rows.length / length; row += 1) {
    const position = row % head
    const from = row - position + Math.floor(position / 2) + (position % 2) * (head / 2)
    reordered.set(rows.subarray(from * length, (from + 1) * length), row * length)
  }
  return reordered
}

/** Bytes of 32 numbers, by type. */
const BLOCK_BYTES: Readonly<Record<number, number>> = { [F32]: 128, 2: 18, 8: 34 }

function byteLength({ type, shape }: GgufTensor): number {
  const count = shape.reduce((product, length) => product * length, 1)
  return (count / 32) * (BLOCK_BYTES[type] as number)
}

const align = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT

function writeHead(shape: Shape, tensors: readonly GgufTensor[], places: number[]): Uint8Array {
  const settings = listSettings(shape)
  const whole = [
    bytes('GGUF'),
    uint32(VERSION),
    uint64(tensors.length),
    uint64(settings.length),
    ...settings.flatMap(([name, value]) => [text(name), value]),
    ...tensors.flatMap(({ name, type, shape: lengths }, index) => [
      text(name),
      uint32(lengths.length),
      ...lengths.map(uint64),
      uint32(type),
      uint64(places[index] as number),
    ]),
  ]
  return Buffer.concat(whole)
}

/** Numbers of the types of settings. */
const [UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY] = [4, 5, 6, 7, 8, 9] as const

function listSettings(shape: Shape): [string, Uint8Array][] {
  const tokens = Array.from({ length: shape.vocabulary }, (_, token) => text(characterOf(token)))
  const count = uint64(shape.vocabulary)
  const array = (type: number, values: Uint8Array[]): Uint8Array =>
    Buffer.concat([uint32(ARRAY), uint32(type), count, ...values])
  const number = (value: number): Uint8Array => Buffer.concat([uint32(UINT32), uint32(value)])
  const flag = (value: boolean): Uint8Array => Buffer.concat([uint32(BOOL), Buffer.of(+value)])
  const string = (value: string): Uint8Array => Buffer.concat([uint32(STRING), text(value)])
  const end = number(shape.vocabulary - 1)
  const ordinary = Buffer.from(new Int32Array(shape.vocabulary).fill(1).buffer)
  const scores = Buffer.alloc(shape.vocabulary * 4)
  return [
    ['general.architecture', string('llama')],
    ['llama.context_length', number(shape.context)],
    ['llama.embedding_length', number(shape.hidden)],
    ['llama.block_count', number(shape.layers)],
    ['llama.feed_forward_length', number(shape.feedForward)],
    ['llama.attention.head_count', number(shape.heads)],
    ['llama.attention.head_count_kv', number(shape.kvHeads)],
    ['llama.attention.key_length', number(shape.head)],
    ['llama.attention.value_length', number(shape.head)],
    ['llama.rope.dimension_count', number(shape.head)],
    ['llama.attention.layer_norm_rms_epsilon', Buffer.concat([uint32(FLOAT32), float32(1e-5)])],
    ['tokenizer.ggml.model', string('llama')],
    ['tokenizer.ggml.tokens', array(STRING, tokens)],
    ['tokenizer.ggml.scores', array(FLOAT32, [scores])],
    ['tokenizer.ggml.token_type', array(INT32, [ordinary])],
    ['tokenizer.ggml.bos_token_id', end],
    ['tokenizer.ggml.eos_token_id', end],
    ['tokenizer.ggml.unknown_token_id', end],
    ['tokenizer.ggml.add_bos_token', flag(false)],
    ['tokenizer.ggml.add_eos_token', flag(false)],
    ['tokenizer.ggml.add_space_prefix', flag(false)],
  ]
}

const bytes = (value: string): Uint8Array => Buffer.from(value)

const text = (value: string): Uint8Array =>
  Buffer.concat([uint64(Buffer.byteLength(value)), bytes(value)])

const uint32 = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer)

const uint64 = (value: number): Uint8Array =>
  new Uint8Array(BigUint64Array.of(BigInt(value)).buffer)

const float32 = (value: number): Uint8Array => new Uint8Array(Float32Array.of(value).buffer)
