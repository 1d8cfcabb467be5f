/** Drafts a catalog entry from the files of a model. The hashes of the files are added later. */
import type { Dtype } from '../catalog/hub/variants.ts'
import { estimateMemoryBytes } from '../catalog/memory-bytes.ts'
import type { Implementation, ModelEntry, PredictorEntry, Resource } from '../catalog/schema.ts'
import type { Device, Precision } from '../types/index.ts'
import { countElements } from '../values/elements.ts'
import { type Folder, readJson, readText } from './folder.ts'
import { checkModel, type OnnxModel, readModel } from './model.ts'
import { refuse } from './refuse.ts'
import { type Draft, draftSignature, type KeepTensor } from './signature.ts'

/** An implementation whose files have not been copied yet. */
export interface Planned extends Omit<Implementation, 'resources'> {
  items: Item[]
}

export interface Plan {
  entry:
    | Omit<ModelEntry, 'implementations' | 'tag' | 'created'>
    | Omit<PredictorEntry, 'implementations' | 'tag' | 'created'>
  implementations: Planned[]
  /** Notes for the author on what to check, one sentence each. */
  notes: string[]
}

/** Applies what an author states to a draft. Only the command line has it, not the host worker. */
export interface Wishes {
  /** Options that are given, such as `--step`. */
  options: readonly string[]
  apply<One extends Draft & Pick<PredictorEntry, 'embeddings' | 'rerank' | 'speech'>>(
    draft: One,
    model: OnnxModel,
  ): One & Pick<PredictorEntry, 'states'>
  /** Returns further files that the implementation needs. */
  listItems(folder: Folder, graph: string): Item[]
}

export interface PlanOptions extends KeepTensor {
  /** Facts that the author states about the inputs and outputs of a graph. Default: none. */
  wishes?: Wishes
  devices: readonly Device[]
  /** Precisions to include from a folder; `null` for all of them. */
  dtypes: readonly Dtype[] | null
  /** Precision that decides which implementation is the best without `dtypes`. Default: `fast`. */
  precision?: Precision | undefined
  /** Reads a graph of a folder. Default: {@link readChecked}. */
  readGraph?: typeof readChecked
}

/** Resolves with the plan of one graph. Rejects with `invalid_request` for a bad one. */
export async function planGraph(folder: Folder, path: string, options: PlanOptions): Promise<Plan> {
  const model = await readChecked(folder, path)
  const drafted = draftSignature(model, options)
  const { wishes } = options
  const draft: Draft & Pick<PredictorEntry, 'states'> = wishes
    ? wishes.apply(drafted, model)
    : drafted
  const { signature, bindings, notes, states } = draft
  checkTensors(model, options)
  const items = itemsOf(folder, path, model)
  if (wishes) {
    notes.push(...noteLargeOutputs(model, signature))
    items.push(...wishes.listItems(folder, path))
  }
  if (isDecoder(model))
    notes.push(
      'This graph is the decoder of a language model. To chat with it, add the folder that also has ' +
        'its config.json or genai_config.json, and its tokenizer.json.',
    )
  const described = { ...describedBy(model), ...(states && { states }) }
  return {
    entry: { type: 'predictor', name: titleOf(path), ...described, signature },
    implementations: options.devices.map((device) =>
      toPlanned(device, device, model.usesHalves, items, bindings),
    ),
    notes,
  }
}

/** Reads a graph. Rejects with `invalid_request` if the runtime cannot run it. */
export async function readChecked(folder: Folder, path: string): Promise<OnnxModel> {
  const model = await readModel(folder, path)
  checkModel(model, folder.nameOf(path))
  return model
}

/** Types of resources that are in memory while a model runs. */
const WEIGHTS: ReadonlySet<Item['type']> = new Set(['onnx', 'data', 'gguf'])

export function toPlanned(
  id: string,
  device: Device,
  usesHalves: boolean,
  items: Item[],
  bindings?: Implementation['bindings'],
  decoder?: Implementation['decoder'],
): Planned {
  const weights = items.filter(({ type }) => WEIGHTS.has(type))
  const features = device === 'webgpu' && usesHalves && { features: ['shader-f16'] }
  return {
    id,
    engine: 'onnx',
    device,
    requires: { ...features, memory: estimateMemoryBytes(weights) },
    ...(bindings && { bindings }),
    ...(decoder && { decoder }),
    items,
  }
}

/** Returns `true` for a decoder, which has a KV cache among its inputs and outputs. */
export const isDecoder = ({ inputs, outputs }: OnnxModel): boolean =>
  inputs.some(({ name }) => name.startsWith('past_')) ||
  outputs.some(({ name }) => name.startsWith('present'))

/**
 * Throws `invalid_request` if tensors are named or described for a chat model, which has no such inputs
 * and outputs.
 */
export function refuseTensors({ tensors, keep, wishes }: PlanOptions): void {
  const [tensor] = tensors
  const [option] = wishes?.options ?? []
  const given = tensor === undefined ? option : keep(tensor)
  if (given === undefined) return
  const what = `${given} is for the inputs and outputs of predictors, and this is a chat model.`
  throw refuse(what, 'Leave it out.')
}

export function checkTensors({ inputs }: OnnxModel, { tensors, keep }: KeepTensor): void {
  const names = inputs.map(({ name }) => name)
  for (const tensor of tensors) {
    if (names.includes(tensor)) continue
    throw refuse(`${keep(tensor)}: unknown input.`, `Expected: ${names.join(', ') || 'none'}.`)
  }
}

/** Bytes of outputs of one run from which a note names them. */
const LARGE_OUTPUT_BYTES = 2 ** 24

/** Notes that outputs are large, since each of them is copied for every prediction. */
function noteLargeOutputs(
  { outputs }: OnnxModel,
  { outputs: declared }: PredictorEntry['signature'],
): string[] {
  if (declared.length < 2) return []
  const bytes = outputs
    .filter(({ name }) => declared.some((output) => output.name === name))
    .map(({ shape }) => 4 * countElements((shape ?? []).map((length) => Number(length) || 1)))
    .reduce((sum, each) => sum + each, 0)
  if (bytes < LARGE_OUTPUT_BYTES) return []
  const what = `The ${declared.length} outputs have ${Math.round(bytes / 1e6)} MB or more`
  return [`${what} for each prediction. To declare only those that you need, use --output.`]
}

export const describedBy = ({ description }: OnnxModel): { description?: string } =>
  description.trim() ? { description: description.trim() } : {}

export interface Item {
  type: Resource['type']
  /** Name among the resources, with forward slashes. */
  name: string
  path: string
  bytes: number
  /** Content of a file that is made from others. The path is that of no file then. */
  text?: string
}

/** Returns a graph and the files of its weights. Rejects those that are not beside it. */
export function itemsOf(folder: Folder, graph: string, { externalData }: OnnxModel): Item[] {
  const slash = graph.lastIndexOf('/') + 1
  const keepsIn = (name: string): string => `${folder.nameOf(graph)} keeps weights in ${name},`
  const data = externalData.map((location): Item => {
    const name = below(location)
    const todo = 'Save it again with its weights beside it.'
    if (name === null) throw refuse(`${keepsIn(location)} outside of its folder.`, todo)
    const path = graph.slice(0, slash) + name
    const bytes = folder.sizeOf(path)
    if (bytes !== undefined) return { type: 'data', name, path, bytes }
    const file = name.slice(name.lastIndexOf('/') + 1)
    throw refuse(
      `${keepsIn(name)} which is not beside it.`,
      `Put ${file} there, or save the model again in one file.`,
    )
  })
  const bytes = folder.sizeOf(graph) ?? 0
  return [{ type: 'onnx', name: graph.slice(slash), path: graph, bytes }, ...data]
}

/** Returns the normalized path; `null` for a path that leads out of the folder. */
function below(location: string): string | null {
  if (/^([\\/]|[a-z]:)/i.test(location)) return null
  const parts: string[] = []
  for (const part of location.split('/')) {
    if (part === '..' && parts.pop() === undefined) return null
    if (part !== '' && part !== '.' && part !== '..') parts.push(part)
  }
  return parts.join('/')
}

const JINJA = 'chat_template.jinja'

/** Resolves with what the chat template supports. Rejects without one, unless `hasOtherWay`. */
export async function capabilitiesOf(
  folder: Folder,
  hasOtherWay = false,
): Promise<ModelEntry['capabilities']> {
  const has = (path: string): boolean => folder.sizeOf(path) !== undefined
  const templates = has(JINJA) ? [await readText(folder, JINJA)] : []
  for (const path of ['chat_template.json', 'tokenizer_config.json'].filter(has))
    templates.push(JSON.stringify((await readJson(folder, path))['chat_template'] ?? ''))
  const template = templates.join('')
  if (template.replaceAll('"', '') === '' && !hasOtherWay)
    throw refuse(
      `${folder.nameOf('')} has no chat template, neither in tokenizer_config.json nor as ${JINJA}.`,
      'Copy them from the original model, or add its graph alone.',
    )
  return toCapabilities(template)
}

/** Returns what a chat template supports. */
export const toCapabilities = (template: string): ModelEntry['capabilities'] => ({
  ...(/\btools\b/.test(template) && { tools: true }),
  ...(/enable_thinking|<think>/.test(template) && { thinking: true }),
  structuredOutputs: true,
})

/** Returns a title for a path, such as `Super resolution` for `models/super_resolution.onnx`. */
export function titleOf(path: string): string {
  const words = path
    .replace(/\/+$/, '')
    .replace(/^.*\/|\.onnx$/g, '')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : 'Model'
}
