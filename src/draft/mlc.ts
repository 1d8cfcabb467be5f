/** Drafts a catalog entry from a folder that MLC compiled a model to. */
import type { HubFile } from '../catalog/hub/variants.ts'
import {
  CONFIG_FILE,
  toRequiredFeatures,
  WEIGHT_LIST_FILES,
  DEFAULT_MAX_TOKENS,
  parseShards,
  TOKENIZER_FILES,
  findMlcContextTokens,
} from '../catalog/mlc/model-files.ts'
import { estimateMemoryBytes } from '../catalog/memory-bytes.ts'
import { readJson, type Folder } from './folder.ts'
import { capabilitiesOf, type Item, type Plan, titleOf } from './plan.ts'
import { refuse } from './refuse.ts'
import { isObject } from '../values/objects.ts'

/** Resolves with the plan. Rejects with `invalid_request` that names the missing file. */
export async function planMlc(folder: Folder, files: readonly HubFile[]): Promise<Plan> {
  const find = (name: string) => files.find((file) => file.path === name)
  const item = (type: Item['type'], name: string): Item => {
    const file = find(name)
    if (file) return { type, name, path: name, bytes: file.bytes }
    throw refuse(`${folder.nameOf('')} has no ${name}.`, 'Copy all files of the compiled model.')
  }
  const libraries = files.filter((file) => file.path.endsWith('.wasm'))
  const [library] = libraries
  if (!library || libraries.length > 1)
    throw refuse(
      `${folder.nameOf('')} has ${libraries.length} libraries (.wasm), and exactly one is needed.`,
      'Put only the library there that the model was compiled to.',
    )
  const list = WEIGHT_LIST_FILES.find(find) ?? WEIGHT_LIST_FILES[0] ?? ''
  const shards = await shardsIn(folder, item('mlc', list).path)
  const chat = await readJson(folder, CONFIG_FILE)
  const [tokenizer = '', ...others] = TOKENIZER_FILES
  const items = [
    item('config', CONFIG_FILE),
    item('tokenizer', tokenizer),
    ...others.filter(find).map((name) => item('tokenizer', name)),
    item('wasm', library.path),
    item('mlc', list),
    ...shards.map((name) => item('mlc', name)),
  ]
  const context = findMlcContextTokens(chat)
  const maxInputTokens = Math.min(context ?? DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS)
  const quantization = String(chat['quantization'] ?? 'mlc')
  const features = toRequiredFeatures(quantization)
  const memory = estimateMemoryBytes(items)
  return {
    entry: {
      type: 'model',
      name: titleOf(folder.nameOf('')),
      maxInputTokens,
      maxOutputTokens: maxInputTokens,
      capabilities: await capabilitiesOf(folder, isObject(chat['conv_template'])),
    },
    implementations: [
      {
        id: quantization,
        engine: 'mlc',
        device: 'webgpu',
        requires: { ...(features.length > 0 && { features }), memory },
        items,
      },
    ],
    notes: [
      'It runs with WebLLM, on WebGPU only. Run `npx inorigin init --mlc` once.',
      ...((context ?? 0) > DEFAULT_MAX_TOKENS
        ? [`It supports ${context} tokens. Raise "maxInputTokens" if devices have enough memory.`]
        : []),
    ],
  }
}

async function shardsIn(folder: Folder, list: string): Promise<string[]> {
  const shards = parseShards(await readJson(folder, list))
  if (shards) return shards.map(({ path }) => path)
  throw refuse(`${folder.nameOf(list)} is not a list of weights.`, 'Download it again.')
}
