/** Writes the guide in GGUF, so that llama.cpp's server can answer with the same weights. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fieldsOf, MODEL_GRAPH, readNumber } from '../../src/engine/onnx/protobuf.ts'
import { halfToFloat32 } from '../../src/values/elements.ts'
import {
  type GgufSetting,
  type GgufTensor,
  interleave,
  TENSOR_TYPES,
  value,
  writeGgufFile,
} from '../bench/models/gguf-file.ts'
import { transpose } from '../bench/models/weights.ts'

const FOLDER = join(import.meta.dirname, '../../demo/models/guide')

/** Numbers of fields in onnx.proto. */
const GRAPH_INITIALIZER = 5
const TENSOR = { dims: 1, name: 8, rawData: 9 }

interface Config {
  hidden_size: number
  num_hidden_layers: number
  num_attention_heads: number
  num_key_value_heads: number
  head_dim: number
  intermediate_size: number
  vocab_size: number
  max_position_embeddings: number
  rope_theta: number
  rms_norm_eps: number
  eos_token_id: number
  pad_token_id: number
}

interface Tokenizer {
  added_tokens: { id: number; content: string; special: boolean }[]
  model: { vocab: Record<string, number>; merges: [string, string][] }
}

/** 16-bit floats of a weight, row by row. */
interface Weight {
  shape: number[]
  halves: Uint16Array
}

/** Writes the file at the path. */
export function writeGuide(path: string): void {
  const config = readJson('config.json') as Config
  // `slice` of a Buffer would not copy.
  const file = new Uint8Array(readFileSync(join(FOLDER, 'onnx/model.onnx')))
  const weights = readWeights(file)
  writeGgufFile(path, listSettings(config), listTensors(config, weights))
}

const readJson = (name: string): unknown => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))

function readWeights(file: Uint8Array): Map<string, Weight> {
  const weights = new Map<string, Weight>()
  for (const graph of fieldsOf(file)) {
    if (graph.number !== MODEL_GRAPH) continue
    const bytes = file.subarray(graph.from, graph.to)
    for (const { number, from, to } of fieldsOf(bytes)) {
      if (number !== GRAPH_INITIALIZER) continue
      const { name, ...weight } = readWeight(bytes.subarray(from, to))
      if (name.endsWith('_f16')) weights.set(name.slice(0, -'_f16'.length), weight)
    }
  }
  return weights
}

function readWeight(bytes: Uint8Array): Weight & { name: string } {
  const weight = { name: '', shape: [] as number[], halves: new Uint16Array(0) }
  for (const { number, from, to } of fieldsOf(bytes)) {
    const content = bytes.slice(from, to)
    if (number === TENSOR.name) weight.name = new TextDecoder().decode(content)
    if (number === TENSOR.dims) weight.shape.push(...readNumbers(content))
    // The constants of the graph, which have other types, are no weights and may have any length.
    if (number === TENSOR.rawData)
      weight.halves = new Uint16Array(content.buffer, 0, (to - from) >> 1)
  }
  return weight
}

function readNumbers(bytes: Uint8Array): number[] {
  const numbers: number[] = []
  for (let at = 0; at < bytes.length;) {
    const read = readNumber(bytes, at)
    if (!read) throw new Error('A length in the ONNX file is invalid.')
    numbers.push(read.value)
    at = read.to
  }
  return numbers
}

function listTensors(config: Config, weights: Map<string, Weight>): GgufTensor[] {
  const find = (name: string): Weight => {
    const weight = weights.get(name)
    if (!weight) throw new Error(`The ONNX file has no weight ${name}.`)
    return weight
  }
  const norm = (name: string, from: string): GgufTensor => {
    const { shape, halves } = find(from)
    const create = () => new Uint8Array(halfToFloat32(halves).buffer)
    return { name: `${name}.weight`, type: TENSOR_TYPES.f32, shape, create }
  }
  const matrix = (name: string, from: string, rotates = false): GgufTensor => {
    const { shape, halves } = find(from)
    const [inputs = 0, outputs = 0] = shape
    const create = () => {
      const rows = transpose(halves, inputs, outputs)
      return bytesOf(rotates ? interleave(rows, inputs, config.head_dim) : rows)
    }
    return { name: `${name}.weight`, type: TENSOR_TYPES.f16, shape: [inputs, outputs], create }
  }
  const blocks = Array.from({ length: config.num_hidden_layers }, (_, layer) => [
    norm(`blk.${layer}.attn_norm`, layer === 0 ? 'first_norm' : `l${layer - 1}.next_norm`),
    matrix(`blk.${layer}.attn_q`, `l${layer}.self_attn.q_proj`, true),
    matrix(`blk.${layer}.attn_k`, `l${layer}.self_attn.k_proj`, true),
    matrix(`blk.${layer}.attn_v`, `l${layer}.self_attn.v_proj`),
    matrix(`blk.${layer}.attn_output`, `l${layer}.self_attn.o_proj`),
    norm(`blk.${layer}.ffn_norm`, `l${layer}.post_norm`),
    matrix(`blk.${layer}.ffn_gate`, `l${layer}.gate_proj`),
    matrix(`blk.${layer}.ffn_up`, `l${layer}.up_proj`),
    matrix(`blk.${layer}.ffn_down`, `l${layer}.down_proj`),
  ])
  const embeddings: GgufTensor = {
    name: 'token_embd.weight',
    type: TENSOR_TYPES.f16,
    shape: [config.hidden_size, config.vocab_size],
    create: () => bytesOf(find('embed_tokens').halves),
  }
  // The embeddings are the head as well.
  const last = norm('output_norm', `l${config.num_hidden_layers - 1}.next_norm`)
  return [embeddings, ...blocks.flat(), last]
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint16Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Types of tokens, by their numbers in llama.h. */
const [NORMAL, CONTROL, USER_DEFINED] = [1, 3, 4] as const

function listSettings(config: Config): GgufSetting[] {
  const tokenizer = readJson('tokenizer.json') as Tokenizer
  const { chat_template: template } = readJson('tokenizer_config.json') as { chat_template: string }
  const tokens: string[] = []
  const types: number[] = []
  for (const [token, id] of Object.entries(tokenizer.model.vocab)) {
    tokens[id] = token
    types[id] = NORMAL
  }
  for (const { id, content, special } of tokenizer.added_tokens) {
    tokens[id] = content
    types[id] = special ? CONTROL : USER_DEFINED
  }
  return [
    ['general.architecture', value.string('llama')],
    ['general.name', value.string('guide')],
    ['llama.context_length', value.number(config.max_position_embeddings)],
    ['llama.embedding_length', value.number(config.hidden_size)],
    ['llama.block_count', value.number(config.num_hidden_layers)],
    ['llama.feed_forward_length', value.number(config.intermediate_size)],
    ['llama.attention.head_count', value.number(config.num_attention_heads)],
    ['llama.attention.head_count_kv', value.number(config.num_key_value_heads)],
    ['llama.attention.key_length', value.number(config.head_dim)],
    ['llama.attention.value_length', value.number(config.head_dim)],
    ['llama.rope.dimension_count', value.number(config.head_dim)],
    ['llama.rope.freq_base', value.float(config.rope_theta)],
    ['llama.attention.layer_norm_rms_epsilon', value.float(config.rms_norm_eps)],
    ['tokenizer.ggml.model', value.string('gpt2')],
    // It splits words and digits as the guide does, but not two line breaks before a word.
    ['tokenizer.ggml.pre', value.string('smollm')],
    ['tokenizer.ggml.tokens', value.strings(tokens)],
    ['tokenizer.ggml.token_type', value.integers(types)],
    ['tokenizer.ggml.merges', value.strings(tokenizer.model.merges.map((pair) => pair.join(' ')))],
    ['tokenizer.ggml.eos_token_id', value.number(config.eos_token_id)],
    ['tokenizer.ggml.padding_token_id', value.number(config.pad_token_id)],
    ['tokenizer.ggml.add_bos_token', value.flag(false)],
    ['tokenizer.chat_template', value.string(template)],
  ]
}
