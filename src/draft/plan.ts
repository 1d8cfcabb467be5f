/** Drafts a catalog entry from the files of a model. The hashes of the files are added later. */
import { toTokenLimits } from '../catalog/hub/resolve-hub.ts'
import {
  type Dtype,
  findContextTokens,
  findVariants,
  type HubFile,
  TEXT_FILES,
  type Variant,
} from '../catalog/hub/variants.ts'
import { estimateMemoryBytes } from '../catalog/memory-bytes.ts'
import type { Implementation, ModelEntry, PredictorEntry, Resource } from '../catalog/schema.ts'
import { isVisionModel, VISION_MODEL_TYPES } from '../engine/onnx/vision/families.ts'
import type { Device } from '../types/index.ts'
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
  apply(draft: Draft, model: OnnxModel): Draft & Pick<PredictorEntry, 'states'>
  /** Returns further files that the implementation needs. */
  listItems(folder: Folder, graph: string): Item[]
}

export interface PlanOptions extends KeepTensor {
  /** Facts that the author states about the inputs and outputs of a graph. Default: none. */
  wishes?: Wishes
  devices: readonly Device[]
  /** Precisions to include from a folder; `null` for all of them. */
  dtypes: readonly Dtype[] | null
}

/** Maximum number of tokens of a text if the encoder's configuration does not state it. */
const DEFAULT_MAX_TEXT_TOKENS = 512

/** Resolves with the plan of one graph. Rejects with `invalid_request` for a bad one. */
export async function planGraph(folder: Folder, path: string, options: PlanOptions): Promise<Plan> {
  const model = await readChecked(folder, path)
  const drafted = draftSignature(model, options)
  const { wishes } = options
  const draft: ReturnType<Wishes['apply']> = wishes ? wishes.apply(drafted, model) : drafted
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
        'its config.json and tokenizer.json.',
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

/** Resolves with the plan of a folder in the layout of web exports. Rejects as `planGraph`. */
export async function planLayout(
  folder: Folder,
  files: readonly HubFile[],
  options: PlanOptions,
): Promise<Plan> {
  const { devices, dtypes } = options
  const config = await readJson(folder, 'config.json')
  const seesImages =
    isVisionModel(config) && files.some(({ path }) => path.startsWith('onnx/vision_encoder'))
  const variants = findVariants(files, dtypes, seesImages).filter(({ device }) =>
    devices.includes(device),
  )
  if (variants.length === 0) {
    const wanted = dtypes ? ` in ${dtypes.join(' or ')}` : ''
    const what = `${folder.nameOf('')} has no onnx/model*.onnx${wanted} for ${devices.join(' or ')}.`
    throw refuse(what, 'Check its files.')
  }
  const texts = TEXT_FILES.flatMap(({ path, type }): Item[] => {
    const bytes = folder.sizeOf(path)
    return bytes === undefined ? [] : [{ type, name: path, path, bytes }]
  })
  const models = new Map<string, OnnxModel>()
  const planned: PlannedVariant[] = []
  for (const variant of variants) {
    const items = [...texts]
    let model: OnnxModel | undefined
    for (const { path } of variant.files.filter((file) => file.path.endsWith('.onnx'))) {
      model = models.get(path) ?? (await readChecked(folder, path))
      models.set(path, model)
      items.push(...itemsOf(folder, path, model).map((item) => ({ ...item, name: item.path })))
    }
    if (model) planned.push({ ...variant, model, items })
  }
  const [best] = planned
  if (!best) throw refuse(`${folder.nameOf('')} has no graph.`, 'Check its files.')
  if (!isDecoder(best.model)) return planEncoder(folder, best, planned, config, options)
  refuseTensors(options)
  const limits = toTokenLimits(
    { maxInputTokens: null, maxOutputTokens: null },
    findContextTokens(config),
  )
  const capabilities = {
    ...(await capabilitiesOf(folder)),
    ...(seesImages && { imageInput: true }),
  }
  return {
    entry: { type: 'model', name: titleOf(folder.nameOf('')), ...limits, capabilities },
    implementations: planned.map((variant) => variantToPlanned(variant)),
    notes: seesImages ? [] : noteUnreadImages(config),
  }
}

interface PlannedVariant extends Variant {
  model: OnnxModel
  items: Item[]
}

type Config = Readonly<Record<string, unknown>>

/** Returns a note if the model sees images in a way that no engine reads. */
function noteUnreadImages({ model_type: type, vision_config: vision }: Config): string[] {
  if (vision === undefined) return []
  const supported = VISION_MODEL_TYPES.join(', ')
  const reason = VISION_MODEL_TYPES.includes(String(type))
    ? 'the folder has no onnx/vision_encoder*.onnx'
    : `the layout ${JSON.stringify(type)} is not supported (supported: ${supported})`
  return [`The model answers text only: it sees images, but ${reason}.`]
}

function planEncoder(
  folder: Folder,
  best: PlannedVariant,
  planned: readonly PlannedVariant[],
  config: Config,
  options: PlanOptions,
): Plan {
  const tokenizer = { name: 'tokenizer.json', most: maxTextTokens(config) }
  const draftOf = ({ model }: PlannedVariant) => draftSignature(model, { ...options, tokenizer })
  const { signature, bindings, notes } = draftOf(best)
  checkTensors(best.model, options)
  const drafted = JSON.stringify(signature)
  const isSame = (variant: PlannedVariant) => JSON.stringify(draftOf(variant).signature) === drafted
  const same = planned.filter(isSame)
  const others = planned.filter((variant) => !same.includes(variant)).map(({ dtype }) => dtype)
  for (const dtype of new Set(others))
    notes.push(`${dtype} has other inputs or outputs, and was left out.`)
  const name = titleOf(folder.nameOf(''))
  return {
    entry: { type: 'predictor', name, ...describedBy(best.model), signature },
    implementations: same.map((variant) => variantToPlanned(variant, bindings)),
    notes,
  }
}

async function readChecked(folder: Folder, path: string): Promise<OnnxModel> {
  const model = await readModel(folder, path)
  checkModel(model, folder.nameOf(path))
  return model
}

/** Model families whose positions start after the id of the padding token. */
const OFFSET_POSITION_FAMILIES =
  /^(camembert|data2vec-text|ibert|longformer|mpnet|xmod|(xlm-)?roberta(-.+)?)$/

/** Returns the maximum number of tokens of a text, by the positions that an encoder has. */
function maxTextTokens(config: Config): number {
  const positions = findContextTokens(config) ?? DEFAULT_MAX_TEXT_TOKENS
  const { model_type: family, pad_token_id: padding = 1 } = config
  const unused =
    OFFSET_POSITION_FAMILIES.test(String(family)) && typeof padding === 'number' ? padding + 1 : 0
  return positions > unused ? positions - unused : positions
}

function toPlanned(
  id: string,
  device: Device,
  usesHalves: boolean,
  items: Item[],
  bindings?: Implementation['bindings'],
): Planned {
  const weights = items.filter(({ type }) => type === 'onnx' || type === 'data')
  const features = device === 'webgpu' && usesHalves && { features: ['shader-f16'] }
  return {
    id,
    engine: 'onnx',
    device,
    requires: { ...features, memory: estimateMemoryBytes(weights) },
    ...(bindings && { bindings }),
    items,
  }
}

const variantToPlanned = (
  { dtype, device, features, items }: PlannedVariant,
  bindings?: Implementation['bindings'],
): Planned => toPlanned(`${dtype}-${device}`, device, features.length > 0, items, bindings)

/** Returns `true` for a decoder, which has a KV cache among its inputs and outputs. */
const isDecoder = ({ inputs, outputs }: OnnxModel): boolean =>
  inputs.some(({ name }) => name.startsWith('past_')) ||
  outputs.some(({ name }) => name.startsWith('present'))

/** Throws `invalid_request` if tensors are named for a chat model, which has no such inputs. */
export function refuseTensors({ tensors, keep }: KeepTensor): void {
  const [tensor] = tensors
  if (tensor === undefined) return
  const what = `${keep(tensor)} is for the inputs of predictors, and this is a chat model.`
  throw refuse(what, 'Leave it out.')
}

function checkTensors({ inputs }: OnnxModel, { tensors, keep }: KeepTensor): void {
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

const describedBy = ({ description }: OnnxModel): { description?: string } =>
  description.trim() ? { description: description.trim() } : {}

export interface Item {
  type: Resource['type']
  /** Name among the resources, with forward slashes. */
  name: string
  path: string
  bytes: number
}

/** Returns a graph and the files of its weights. Rejects those that are not beside it. */
function itemsOf(folder: Folder, graph: string, { externalData }: OnnxModel): Item[] {
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
  return {
    ...(/\btools\b/.test(template) && { tools: true }),
    ...(/enable_thinking|<think>/.test(template) && { thinking: true }),
    structuredOutputs: true,
  }
}

/** Returns a title for a path, such as `Super resolution` for `models/super_resolution.onnx`. */
export function titleOf(path: string): string {
  const words = path
    .replace(/\/+$/, '')
    .replace(/^.*\/|\.onnx$/g, '')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : 'Model'
}
