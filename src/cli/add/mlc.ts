/** A folder that MLC compiled a model to, as a catalog entry. */
import { join } from 'node:path'
import {
  CONFIG, featuresOf, LISTS, MOST_PROMISED, shardsOf, tokensOf,
} from '../../catalog/mlc/layout.ts'
import { refuse } from '../onnx/refuse.ts'
import { capabilitiesOf, MEMORY_FACTOR, readJson, titleOf } from './facts.ts'
import type { Plan } from './plan.ts'
import type { Item, Source } from './source.ts'

/** Throws `invalid_request` that names what is missing. */
export function planMlc({ folder, files }: Source & { kind: 'mlc' }): Plan {
  const item = (type: Item['type'], name: string): Item => {
    const file = files.find((one) => one.path === name)
    if (file) return { type, name, path: join(folder, name), bytes: file.bytes }
    throw refuse(`${folder} has no ${name}.`, 'Take all files of the model that MLC made.')
  }
  const libraries = files.filter((file) => file.path.endsWith('.wasm'))
  const [library] = libraries
  if (!library || libraries.length > 1) {
    throw refuse(
      `${folder} has ${libraries.length} libraries (.wasm), and one is needed.`,
      'Put the one beside it that the model was compiled to.',
    )
  }
  const list = LISTS.find((name) => files.some((file) => file.path === name)) ?? 'tensor-cache.json'
  const shards = shardsIn(item('mlc', list).path)
  const chat = readJson(join(folder, CONFIG))
  const template = files.filter((file) => file.path === 'chat_template.jinja')
  const items = [
    item('config', CONFIG),
    ...['tokenizer.json', 'tokenizer_config.json', ...template.map((file) => file.path)].map((name) =>
      item('tokenizer', name),
    ),
    item('wasm', library.path),
    item('mlc', list),
    ...shards.map((name) => item('mlc', name)),
  ]
  const context = tokensOf(chat)
  const maxInputTokens = Math.min(context ?? MOST_PROMISED, MOST_PROMISED)
  const quantization = String(chat['quantization'] ?? 'mlc')
  const features = featuresOf(quantization)
  const memory = Math.ceil(items.reduce((sum, { bytes }) => sum + bytes, 0) * MEMORY_FACTOR)
  return {
    entry: {
      type: 'model', name: titleOf(folder), maxInputTokens, maxOutputTokens: maxInputTokens,
      capabilities: capabilitiesOf(folder, files),
    },
    implementations: [{
      id: quantization, engine: 'mlc', device: 'webgpu',
      requires: { ...(features.length > 0 && { features }), memory },
      items,
    }],
    notes: [
      'It runs by WebLLM, on WebGPU alone: run `npx inorigin init --mlc` once.',
      ...((context ?? 0) > MOST_PROMISED
        ? [`It was made for ${context} tokens; raise "maxInputTokens" if devices have the memory.`]
        : []),
    ],
  }
}

function shardsIn(list: string): string[] {
  const shards = shardsOf(readJson(list))
  if (shards) return shards.map(({ path }) => path)
  throw refuse(`${list} is no list of weights.`, 'Download it again.')
}
