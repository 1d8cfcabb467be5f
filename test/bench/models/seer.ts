/**
 * Writes a model with random weights that sees images, in the layout of idefics3: the decoder of a
 * shape without its embeddings, the embeddings, and an encoder of 8 M parameters for one tile.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Graph, onnxFile, type Operator, type Weight } from '../../support/onnx.ts'
import { createDecoderGraph } from './decoder-graph.ts'
import { SHAPES, type Shape } from './shapes.ts'
import { createTokenizer } from './tokenizer.ts'
import { drawWeights } from './weights.ts'

/** Side of a tile in pixels, and of a patch. */
const [TILE, PATCH] = [512, 16] as const
/** Rows of a tile: patches are joined in squares of 4 x 4. */
const ROWS = (TILE / PATCH / 4) ** 2
/** Numbers of a patch in the encoder, and its layers. */
const [CHANNELS, LAYERS] = [384, 6] as const

const SPECIAL = ['<image>', '<fake_token_around_image>', '<global-img>']

/** Writes the model, unless it is there. */
export function writeSeer(folder: string): void {
  if (existsSync(join(folder, 'config.json'))) return
  const shape = SHAPES['30M']
  mkdirSync(join(folder, 'onnx'), { recursive: true })
  const write = (name: string, graph: Graph): void =>
    writeFileSync(join(folder, 'onnx', `${name}.onnx`), onnxFile(graph))
  const { decoder, embed } = createDecoder(shape)
  write('decoder_model_merged', decoder)
  write('embed_tokens', embed)
  write('vision_encoder', createEncoder(shape))
  // Last, since they say that all is there.
  writeTexts(shape, folder)
}

const floats = (name: string, shape: readonly number[], data: Float32Array): Weight => ({
  name,
  type: 'float32',
  shape,
  data: new Uint8Array(data.buffer),
})

function createDecoder(shape: Shape): { decoder: Graph; embed: Graph } {
  const weights: Weight[] = []
  const { nodes, inputs, outputs } = createDecoderGraph(shape, 'fp32', (added) => {
    for (const { data, ...rest } of added)
      weights.push({ ...rest, data: new Uint8Array(data.buffer as ArrayBuffer) })
  })
  const isEmbedding = ({ outputs: [first] }: Operator): boolean => first === 'x0'
  const dims = ['batch_size', 'sequence_length', shape.hidden]
  const embeds = { name: 'inputs_embeds', type: 'float32', shape: dims } as const
  const rename = (name: string): string => (name === 'x0' ? embeds.name : name)
  const renamed = nodes
    .filter((node) => !isEmbedding(node))
    .map((node) => ({ ...node, inputs: node.inputs.map(rename) }))
  const table = weights.filter(({ name }) => name === 'embed')
  const others = weights.filter(({ name }) => name !== 'embed')
  const isIds = ({ name }: { name: string }): boolean => name === 'input_ids'
  return {
    decoder: {
      nodes: renamed,
      inputs: inputs.map((port) => (isIds(port) ? embeds : port)),
      outputs,
      weights: others,
    },
    embed: {
      nodes: [{ type: 'Gather', inputs: ['embed', 'input_ids'], outputs: [embeds.name] }],
      inputs: inputs.filter(isIds),
      outputs: [embeds],
      weights: table,
    },
  }
}

/** Layers of a vision transformer without its attention, as convolutions of one patch. */
function createEncoder({ hidden }: Shape): Graph {
  const nodes: Operator[] = []
  const weights: Weight[] = []
  const add = (type: string, inputs: string[], attributes: Operator['attributes'] = {}): string => {
    const output = `t${nodes.length}`
    nodes.push({ type, inputs, outputs: [output], attributes })
    return output
  }
  const integers = (name: string, values: readonly number[]): string => {
    const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer)
    weights.push({ name, type: 'int64', shape: [values.length], data })
    return name
  }
  const convolve = (input: string, name: string, from: number, to: number): string => {
    weights.push(floats(name, [to, from, 1, 1], drawWeights(name, 'normal', from, to)))
    return add('Conv', [input, name])
  }
  const pixels = add('Reshape', ['pixel_values', integers('tile', [-1, 3, TILE, TILE])])
  const patches = add('SpaceToDepth', [pixels], { blocksize: PATCH })
  let stream = convolve(patches, 'patch', 3 * PATCH ** 2, CHANNELS)
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const wide = convolve(stream, `up${layer}`, CHANNELS, 4 * CHANNELS)
    const narrow = convolve(add('Relu', [wide]), `down${layer}`, 4 * CHANNELS, CHANNELS)
    stream = add('Tanh', [add('Add', [stream, narrow])])
  }
  const joined = add('SpaceToDepth', [stream], { blocksize: 4 })
  const wide = 16 * CHANNELS
  const columns = add('Reshape', [joined, integers('columns', [wide, ROWS])])
  weights.push(floats('connect', [wide, hidden], drawWeights('connect', 'normal', wide, hidden)))
  const rows = add('MatMul', [add('Transpose', [columns]), 'connect'])
  const output = integers('rows', [1, ROWS, hidden])
  nodes.push({ type: 'Reshape', inputs: [rows, output], outputs: ['image_features'] })
  return {
    nodes,
    weights,
    inputs: [{ name: 'pixel_values', type: 'float32', shape: [1, 'tiles', 3, TILE, TILE] }],
    outputs: [{ name: 'image_features', type: 'float32', shape: ['tiles', ROWS, hidden] }],
  }
}

function writeTexts({ vocabulary, heads, kvHeads, head, context }: Shape, folder: string): void {
  // No text ends by itself: the end token's score is always 0, and others are above.
  const eos_token_id = vocabulary - 1
  const first = vocabulary - 1 - SPECIAL.length
  const added_tokens = SPECIAL.map((content, index) => ({
    id: first + index,
    content,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  }))
  const chat_template =
    "{% for message in messages %}{% for part in message['content'] %}{% if part['type'] == 'image' %}" +
    "<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
  const files = {
    'generation_config.json': { eos_token_id },
    'tokenizer.json': { ...createTokenizer(first), added_tokens },
    'tokenizer_config.json': { tokenizer_class: 'PreTrainedTokenizerFast', chat_template },
    'preprocessor_config.json': {
      size: { longest_edge: TILE },
      max_image_size: { longest_edge: TILE },
      resample: 1,
    },
    'processor_config.json': { image_seq_len: ROWS },
    'config.json': {
      model_type: 'idefics3',
      image_token_id: first,
      eos_token_id,
      text_config: {
        vocab_size: vocabulary,
        num_attention_heads: heads,
        num_key_value_heads: kvHeads,
        head_dim: head,
        max_position_embeddings: context,
      },
    },
  }
  for (const [name, json] of Object.entries(files))
    writeFileSync(join(folder, name), JSON.stringify(json))
}
