/** A folder that MLC compiled a model to, as a catalog entry. */
import { join } from 'node:path'
import * as v from 'valibot'
import { path } from '../../catalog/values.ts'
import { LISTS } from '../../engine/webllm/artifacts.ts'
import { CONFIG } from '../../engine/webllm/texts.ts'
import { refuse } from '../onnx/refuse.ts'
import { capabilitiesOf, MEMORY_FACTOR, readJson, titleOf } from './facts.ts'
import type { Plan } from './plan.ts'
import type { Item, Source } from './source.ts'

/** Memory is laid out for every token that is promised; more than this is for its author to promise. */
const MOST_TOKENS = 4_096

const listSchema = v.object({ records: v.array(v.object({ dataPath: path })) })

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
  const shards = shardsOf(item('mlc', list).path)
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
  const context = [chat['context_window_size'], chat['sliding_window_size']]
    .find((length): length is number => typeof length === 'number' && length > 0)
  const maxInputTokens = Math.min(context ?? MOST_TOKENS, MOST_TOKENS)
  const quantization = String(chat['quantization'] ?? 'mlc')
  const features = quantization.includes('f16') ? ['shader-f16'] : []
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
      ...((context ?? 0) > MOST_TOKENS
        ? [`It was made for ${context} tokens; raise "maxInputTokens" if devices have the memory.`]
        : []),
    ],
  }
}

function shardsOf(list: string): string[] {
  const { success, output } = v.safeParse(listSchema, readJson(list))
  if (success) return [...new Set(output.records.map(({ dataPath }) => dataPath))]
  throw refuse(`${list} is no list of weights.`, 'Download it again.')
}
