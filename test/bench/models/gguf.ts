/** Writes the same models in GGUF, the format of llama.cpp. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  type GgufSetting,
  type GgufTensor,
  interleave,
  TENSOR_TYPES,
  value,
  writeGgufFile,
} from './gguf-file.ts'
import { toQ4, toQ8 } from './quantize.ts'
import { type GgufFormat, ggufPath, type Shape, SHAPES, type ShapeName } from './shapes.ts'
import { characterOf } from './tokenizer.ts'
import { drawWeights, transpose, type WeightKind } from './weights.ts'

const QUANTIZE = { q4_0: toQ4, q8_0: toQ8 } as const

/**
 * Writes the model, unless it is there. All matrices have the format, the embeddings too. The weights
 * are those of the ONNX files before they are quantized.
 */
export function writeGguf(name: ShapeName, format: GgufFormat, folder: string): void {
  const path = join(folder, ggufPath(format))
  if (existsSync(path)) return
  const shape = SHAPES[name]
  writeGgufFile(path, listSettings(shape), listTensors(shape, format))
}

function listTensors(shape: Shape, format: GgufFormat): GgufTensor[] {
  const { hidden, heads, kvHeads, head, feedForward, vocabulary, layers } = shape
  const type = TENSOR_TYPES[format]
  const quantize = QUANTIZE[format]
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
    type: TENSOR_TYPES.f32,
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

function listSettings(shape: Shape): GgufSetting[] {
  const { vocabulary } = shape
  const each = Array.from({ length: vocabulary }, (_, token) => token)
  const end = value.number(vocabulary - 1)
  return [
    ['general.architecture', value.string('llama')],
    ['llama.context_length', value.number(shape.context)],
    ['llama.embedding_length', value.number(shape.hidden)],
    ['llama.block_count', value.number(shape.layers)],
    ['llama.feed_forward_length', value.number(shape.feedForward)],
    ['llama.attention.head_count', value.number(shape.heads)],
    ['llama.attention.head_count_kv', value.number(shape.kvHeads)],
    ['llama.attention.key_length', value.number(shape.head)],
    ['llama.attention.value_length', value.number(shape.head)],
    ['llama.rope.dimension_count', value.number(shape.head)],
    ['llama.attention.layer_norm_rms_epsilon', value.float(1e-5)],
    ['tokenizer.ggml.model', value.string('llama')],
    ['tokenizer.ggml.tokens', value.strings(each.map(characterOf))],
    ['tokenizer.ggml.scores', value.floats(each.map(() => 0))],
    // Every token is an ordinary one.
    ['tokenizer.ggml.token_type', value.integers(each.map(() => 1))],
    ['tokenizer.ggml.bos_token_id', end],
    ['tokenizer.ggml.eos_token_id', end],
    ['tokenizer.ggml.unknown_token_id', end],
    ['tokenizer.ggml.add_bos_token', value.flag(false)],
    ['tokenizer.ggml.add_eos_token', value.flag(false)],
    ['tokenizer.ggml.add_space_prefix', value.flag(false)],
  ]
}
