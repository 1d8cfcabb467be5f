/**
 * Drafts models by their kind: one graph, a GGUF file, a folder of web exports or of ONNX Runtime
 * GenAI, or MLC.
 */
import type { HubFile } from '../catalog/hub/variants.ts'
import { estimateMemoryBytes } from '../catalog/memory-bytes.ts'
import {
  CONFIG_FILE,
  DEFAULT_MAX_TOKENS,
  findMlcContextTokens,
  parseShards,
  TOKENIZER_FILES,
  toRequiredFeatures,
  WEIGHT_LIST_FILES,
} from '../catalog/mlc/model-files.ts'
import type { InoriginError } from '../error.ts'
import { isObject } from '../values/objects.ts'
import { type Folder, listPartPaths, readJson } from './folder.ts'
import { GENAI_CONFIG } from './genai.ts'
import {
  capabilitiesOf,
  type Item,
  type Plan,
  planGraph,
  type PlanOptions,
  readChecked,
  refuseTensors,
  titleOf,
} from './plan.ts'
import { findFormatByPath, refuse } from './refuse.ts'

export type Kind =
  | { kind: 'graph' | 'gguf'; path: string }
  | { kind: 'layout' | 'flat' | 'genai' | 'mlc' }

const LAYOUT = 'config.json and onnx/model*.onnx'

/** Returns the kind of a folder. Throws `invalid_request` with the expected files. */
export function kindOf(folder: string, files: readonly HubFile[]): Kind {
  const paths = files.map(({ path }) => path)
  const has = (path: string): boolean => paths.includes(path)
  if (has(CONFIG_FILE)) return { kind: 'mlc' }
  const hasGraphs = paths.some((path) => path.startsWith('onnx/'))
  if (has('config.json') && hasGraphs) return { kind: 'layout' }
  if (has(GENAI_CONFIG)) return { kind: 'genai' }
  const graphs = paths.filter((path) => path.endsWith('.onnx'))
  const isBeside = graphs.length > 1 && graphs.some((path) => !path.includes('/'))
  if (has('config.json') && isBeside) return { kind: 'flat' }
  const [only] = graphs
  if (only === undefined) {
    const path = findGguf(folder, paths)
    if (path === undefined) throw noGraph(folder, paths)
    return { kind: 'gguf', path }
  }
  if (graphs.length === 1) return { kind: 'graph', path: only }
  throw refuse(
    `${folder} has ${graphs.length} graphs: ${graphs.join(', ')}.`,
    `Choose one of them, or add ${LAYOUT}.`,
  )
}

/** Returns the GGUF file of a folder; `undefined` if there is none. Throws if there are several. */
function findGguf(folder: string, paths: readonly string[]): string | undefined {
  const found = paths.filter((path) => /\.gguf$/i.test(path))
  const first = new Set(found.map((path) => listPartPaths(path)[0] ?? path))
  const [path] = first
  if (first.size < 2) return path
  throw refuse(
    `${folder} has ${first.size} GGUF files: ${found.join(', ')}.`,
    'Choose one of them.',
  )
}

/** Returns the error for a folder without a graph. It names the other format if the folder has one. */
function noGraph(folder: string, paths: readonly string[]): InoriginError {
  for (const path of paths) {
    const format = findFormatByPath(path)
    const whole = `${folder.replace(/[/\\]$/, '')}/${path}`
    if (format)
      return refuse(`${folder} has no .onnx file. ${path} ${format.what}`, format.todo(whole))
  }
  return refuse(`${folder} has no .onnx file.`, `Choose a folder with one, or with ${LAYOUT}.`)
}

/** Imports what only these folders need, such as the tokenizer. */
const layout = () => import('./layout.ts')

/** Resolves with the plan. Item paths are relative to the folder. Rejects with `invalid_request`. */
export async function planKind(
  folder: Folder,
  found: Kind,
  files: readonly HubFile[],
  options: PlanOptions,
): Promise<Plan> {
  if (found.kind === 'layout') return (await layout()).planLayout(folder, files, options)
  if (found.kind === 'genai') return (await layout()).planGenai(folder, options)
  if (found.kind === 'flat') return (await layout()).planFlat(folder, files, options)
  if (found.kind === 'graph' && files.some(({ path }) => path === 'config.json')) {
    const model = await readChecked(folder, found.path)
    return (await layout()).planConfigGraph(folder, found.path, model, options)
  }
  if (found.kind === 'gguf')
    return (await import('./gguf.ts')).planGguf(folder, found.path, options)
  if (options.dtypes !== null) {
    const what = '--dtypes chooses among the graphs of a folder, and this is one model.'
    throw refuse(what, 'Leave it out.')
  }
  if (found.kind === 'graph') {
    const hasConfig = folder.sizeOf(`${found.path}.json`) !== undefined
    const voice =
      hasConfig && (await (await import('./piper.ts')).planPiper(folder, found.path, options))
    return voice || planGraph(folder, found.path, options)
  }
  refuseTensors(options)
  if (options.devices.includes('webgpu')) return planMlc(folder, files)
  throw refuse('--device wasm: a model compiled by MLC runs only on WebGPU.', 'Leave it out.')
}

/** Resolves with the plan of a folder that MLC compiled a model to. */
async function planMlc(folder: Folder, files: readonly HubFile[]): Promise<Plan> {
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
  const list = item('mlc', WEIGHT_LIST_FILES.find(find) ?? WEIGHT_LIST_FILES[0] ?? '')
  const shards = parseShards(await readJson(folder, list.path))
  if (!shards)
    throw refuse(`${folder.nameOf(list.path)} is not a list of weights.`, 'Download it again.')
  const chat = await readJson(folder, CONFIG_FILE)
  const [tokenizer = '', ...others] = TOKENIZER_FILES
  const items = [
    item('config', CONFIG_FILE),
    item('tokenizer', tokenizer),
    ...others.filter(find).map((name) => item('tokenizer', name)),
    item('wasm', library.path),
    list,
    ...shards.map(({ path }) => item('mlc', path)),
  ]
  const context = findMlcContextTokens(chat)
  const maxInputTokens = Math.min(context ?? DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS)
  const quantization = String(chat['quantization'] ?? 'mlc')
  const features = toRequiredFeatures(quantization)
  const requires = {
    ...(features.length > 0 && { features }),
    memory: estimateMemoryBytes(items),
  }
  return {
    entry: {
      type: 'model',
      name: titleOf(folder.nameOf('')),
      maxInputTokens,
      maxOutputTokens: maxInputTokens,
      capabilities: await capabilitiesOf(folder, isObject(chat['conv_template'])),
    },
    implementations: [{ id: quantization, engine: 'mlc', device: 'webgpu', requires, items }],
    notes: [
      'It runs with WebLLM, on WebGPU only. Run `npx inorigin init --mlc` once.',
      ...((context ?? 0) > DEFAULT_MAX_TOKENS
        ? [`It supports ${context} tokens. Raise "maxInputTokens" if devices have enough memory.`]
        : []),
    ],
  }
}
