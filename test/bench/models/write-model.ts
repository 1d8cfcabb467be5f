/** Writes models with random weights in the layout of a hub. */
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { onnxFile, type Weight } from '../../support/onnx.ts'
import { createDecoderGraph } from './decoder-graph.ts'
import { type OnnxFormat, onnxPath, SHAPES, type Shape, type ShapeName } from './shapes.ts'
import { createTokenizer } from './tokenizer.ts'

/** Bytes from which a weight is in the file of weights instead of the graph. */
const MIN_EXTERNAL_BYTES = 1_024
/** Bytes of which each weight's place in the file is a multiple. */
const ALIGNMENT = 64

/** Writes the model's configuration and tokenizer, and its graph in that format, unless they are there. */
export function writeModel(name: ShapeName, format: OnnxFormat, folder: string): void {
  const shape = SHAPES[name]
  if (!existsSync(join(folder, 'config.json'))) writeTexts(shape, folder)
  const path = join(folder, onnxPath(format))
  if (existsSync(path)) return
  mkdirSync(dirname(path), { recursive: true })
  const data = openWeights(`${path}_data`)
  const weights: Weight[] = []
  const graph = createDecoderGraph(shape, format, (added) => {
    for (const weight of added) weights.push({ ...weight, data: data.add(weight.data) })
  })
  data.close()
  // Last, since it says that all is there.
  writeFileSync(path, onnxFile({ ...graph, weights }))
}

function openWeights(path: string) {
  const file = openSync(path, 'w')
  let offset = 0
  return {
    /** Returns where the bytes are, or the bytes themselves if they are few. */
    add({ buffer, byteOffset, byteLength }: ArrayBufferView): Weight['data'] {
      const bytes = new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength)
      if (byteLength < MIN_EXTERNAL_BYTES) return bytes
      writeSync(file, bytes, 0, byteLength, offset)
      const place = { location: basename(path), offset, length: byteLength }
      offset += Math.ceil(byteLength / ALIGNMENT) * ALIGNMENT
      return place
    },
    close: () => closeSync(file),
  }
}

function writeTexts(shape: Shape, folder: string): void {
  // No text ends by itself: the end token's score is always 0, and others are above.
  const eos_token_id = shape.vocabulary - 1
  const files = {
    'generation_config.json': { eos_token_id },
    'tokenizer.json': createTokenizer(shape.vocabulary),
    'tokenizer_config.json': {
      tokenizer_class: 'PreTrainedTokenizerFast',
      chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
    },
    'config.json': {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      vocab_size: shape.vocabulary,
      hidden_size: shape.hidden,
      num_hidden_layers: shape.layers,
      num_attention_heads: shape.heads,
      num_key_value_heads: shape.kvHeads,
      head_dim: shape.head,
      max_position_embeddings: shape.context,
      eos_token_id,
      'transformers.js_config': { use_external_data_format: true },
    },
  }
  mkdirSync(folder, { recursive: true })
  for (const [name, json] of Object.entries(files)) {
    writeFileSync(join(folder, name), JSON.stringify(json))
  }
}
