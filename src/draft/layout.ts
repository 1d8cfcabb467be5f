/** Drafts models from folders: chat models in one or more precisions, and encoders of texts. */
import { toTokenLimits } from '../catalog/hub/resolve-hub.ts'
import {
  type Dtype,
  findContextTokens,
  findIncomplete,
  findVariants,
  type HubFile,
  TEXT_FILES,
  toVariants,
  type Variant,
} from '../catalog/hub/variants.ts'
import type { TextDecoderLayout } from '../catalog/decoder-schema.ts'
import type { Implementation, PredictorEntry } from '../catalog/schema.ts'
import { readNodes } from '../engine/onnx/graph-file.ts'
import { isVisionModel, VISION_MODEL_TYPES } from '../engine/onnx/vision/families.ts'
import { InoriginError } from '../error.ts'
import { checkGraphs, checkTexts } from './chat.ts'
import { isEncoderDecoder, planEncoderDecoder } from './encoder-decoder.ts'
import { type Folder, readJson } from './folder.ts'
import { type GenaiModel, readGenai } from './genai.ts'
import type { OnnxModel } from './model.ts'
import {
  capabilitiesOf,
  checkTensors,
  describedBy,
  isDecoder,
  type Item,
  itemsOf,
  type Plan,
  type Planned,
  type PlanOptions,
  readChecked,
  refuseTensors,
  titleOf,
  toPlanned,
} from './plan.ts'
import { refuse } from './refuse.ts'
import { draftSignature } from './signature.ts'
import { type Config, positive, readTaskFiles, type TaskFiles } from './tasks/files.ts'
import { draftTask } from './tasks/index.ts'
import { assertRunsOnCpu } from './tasks/voice.ts'

/** Resolves with the plan of a folder in the layout of web exports. Rejects as `planGraph`. */
export async function planLayout(
  folder: Folder,
  files: readonly HubFile[],
  options: PlanOptions,
): Promise<Plan> {
  const config = await readJson(folder, 'config.json')
  if (isEncoderDecoder(config, listPaths(files)))
    return planEncoderDecoder(folder, files, config, options)
  const { variants, source } = findLayout(folder, files, config, options)
  return planVariants(folder, variants, source, options)
}

/**
 * Resolves with the plan of the predictor in a folder in the layout of web exports; `null` if it has a
 * language model. Rejects as `planGraph`.
 */
export async function planLayoutPredictor(
  folder: Folder,
  files: readonly HubFile[],
  options: PlanOptions,
): Promise<Plan | null> {
  const config = await readJson(folder, 'config.json')
  if (isEncoderDecoder(config, listPaths(files)))
    return planEncoderDecoder(folder, files, config, options)
  const { variants, source } = findLayout(folder, files, config, options)
  const { planned, unfit } = await readVariants(folder, variants, source, options)
  return isChat(source, planned)
    ? null
    : planPredictorVariants(folder, planned, source, unfit, options)
}

const listPaths = (files: readonly HubFile[]): string[] => files.map(({ path }) => path)

/** Returns the variants of a folder in the layout of web exports. Throws as `planGraph`. */
function findLayout(
  folder: Folder,
  files: readonly HubFile[],
  config: Config,
  options: PlanOptions,
) {
  const { devices, dtypes, precision } = options
  const names = files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
  const seesImages =
    isVisionModel(config) && files.some(({ path }) => path.startsWith('onnx/vision_encoder'))
  const variants = findVariants(files, dtypes, seesImages, precision).filter(({ device }) =>
    devices.includes(device),
  )
  const unfit: Unfit = new Map(
    findIncomplete(files, dtypes, seesImages).map((dtype) => [
      dtype,
      refuse(
        `${folder.nameOf('onnx')} has a decoder in ${dtype}, but no ` +
          `${seesImages ? 'embed_tokens or vision_encoder' : 'embed_tokens'} for it.`,
        'Export all graphs in that precision.',
      ),
    ]),
  )
  if (variants.length === 0 && unfit.size > 0) throw noneFit(folder, unfit)
  if (variants.length === 0) {
    const wanted = dtypes ? ` in ${dtypes.join(' or ')}` : ''
    const what = `${folder.nameOf('')} has no onnx/model*.onnx${wanted} for ${devices.join(' or ')}.`
    const graphs = names.filter((name) => name.endsWith('.onnx')).join(', ')
    throw refuse(what, `It has ${graphs}. Name one file to add it as a predictor of its own.`)
  }
  const source: Source = { texts: listTexts(folder), config, seesImages, unfit }
  return { variants, source }
}

/**
 * Resolves with the plan of a folder with the graphs of a predictor beside `config.json`, as Optimum
 * writes them. Rejects as `planGraph`.
 */
export async function planFlat(
  folder: Folder,
  files: readonly HubFile[],
  options: PlanOptions,
): Promise<Plan> {
  const inside = (path: string): string => path.replace(/^onnx\//, '')
  const moved = files
    .filter(({ path }) => !path.includes('/'))
    .map((file) => ({ ...file, path: `onnx/${file.path}` }))
  const nested: Folder = {
    nameOf: (path) => folder.nameOf(inside(path)),
    sizeOf: (path) => folder.sizeOf(inside(path)),
    open: (path) => folder.open(inside(path)),
  }
  const plan = await planLayout(nested, moved, options)
  const implementations = plan.implementations.map(({ decoder, ...one }) => ({
    ...one,
    ...(decoder && { decoder: moveGraphs(decoder, inside) }),
    items: one.items.map((item) => ({
      ...item,
      name: inside(item.name),
      path: inside(item.path),
    })),
  }))
  return { ...plan, implementations }
}

/** Returns a decoder with other names of its graphs. */
const moveGraphs = (
  decoder: TextDecoderLayout,
  move: (path: string) => string,
): TextDecoderLayout => ({
  ...decoder,
  encoder: move(decoder.encoder),
  graph: move(decoder.graph),
  ...(decoder.nextGraph !== undefined && { nextGraph: move(decoder.nextGraph) }),
})

/** Resolves with the plan of a folder of ONNX Runtime GenAI. Rejects as `planGraph`. */
export async function planGenai(folder: Folder, options: PlanOptions): Promise<Plan> {
  const genai = await readGenai(folder)
  const model = await readChecked(folder, genai.graph)
  return planOne(folder, genai.graph, model, { ...options, genai, isChat: true })
}

/** Resolves with the plan of one graph beside `config.json`. Rejects as `planGraph`. */
export async function planConfigGraph(
  folder: Folder,
  path: string,
  model: OnnxModel,
  options: PlanOptions,
): Promise<Plan> {
  const config = await readJson(folder, 'config.json')
  if (isEncoderDecoder(config, [path]))
    return planEncoderDecoder(folder, [toFile(folder, path)], config, options)
  return planOne(folder, path, model, { ...options, isChat: isDecoder(model) })
}

/**
 * Resolves with the plan of a model of one graph, whose name does not tell its precision. Rejects as
 * `planGraph`.
 */
async function planOne(
  folder: Folder,
  path: string,
  model: OnnxModel,
  options: PlanOptions & { genai?: GenaiModel; isChat: boolean },
): Promise<Plan> {
  const { devices, dtypes, genai, isChat } = options
  const dtype = await readPrecision(folder, path, model)
  const name = folder.nameOf(path)
  if (dtypes && !dtypes.includes(dtype))
    throw refuse(
      `--dtypes ${dtypes.join(',')}: the weights of ${name} are ${dtype}.`,
      `Use --dtypes ${dtype}, or leave it out.`,
    )
  const all = toVariants(dtype, [toFile(folder, path)], dtypes)
  const variants = all.filter(({ device }) => devices.includes(device))
  if (variants.length === 0)
    throw refuse(
      `The weights of ${name} are ${dtype}, which is for ${all.map(({ device }) => device).join()}.`,
      `Leave --device out, or use --dtypes ${dtype} to add it for ${devices.join()} nevertheless.`,
    )
  const texts = listTexts(folder)
  const has = (text: string): boolean => texts.some((item) => item.name === text)
  if (genai && !has('config.json')) texts.push(makeText('config.json', genai.config))
  if (genai && !has('generation_config.json'))
    texts.push(makeText('generation_config.json', genai.generation))
  const config =
    folder.sizeOf('config.json') !== undefined
      ? await readJson(folder, 'config.json')
      : (genai?.config ?? {})
  const source = { texts, config, seesImages: false, isChat }
  return planVariants(folder, variants, source, options)
}

const toFile = (folder: Folder, path: string): HubFile => ({
  path,
  bytes: folder.sizeOf(path) ?? 0,
  sha256: null,
  blobId: '',
})

const listTexts = (folder: Folder): Item[] =>
  TEXT_FILES.flatMap(({ path, type }) => listFiles(folder, [path], type))

/** Returns those of the files that the folder has. */
const listFiles = (folder: Folder, paths: readonly string[], type: Item['type']): Item[] =>
  paths.flatMap((path): Item[] => {
    const bytes = folder.sizeOf(path)
    return bytes === undefined ? [] : [{ type, name: path, path, bytes }]
  })

/** Returns a file of configuration that is made from another one. */
function makeText(name: string, content: Config): Item {
  const text = `${JSON.stringify(content, null, 2)}\n`
  const { length: bytes } = new TextEncoder().encode(text)
  return { type: 'config', name, path: name, bytes, text }
}

const BITS_DTYPES: Readonly<Record<number, Dtype>> = { 1: 'q1', 2: 'q2', 4: 'q4', 8: 'q8' }

/** Resolves with the precision of a graph's weights and tensors, by its operators. */
async function readPrecision(folder: Folder, path: string, model: OnnxModel): Promise<Dtype> {
  const file = await folder.open(path)
  const nodes = await readNodes(file).finally(() => file.close())
  const has = (kind: RegExp): boolean => nodes.some((node) => kind.test(node.kind))
  const halves = [...model.inputs, ...model.outputs].some(({ type }) => type === 'float16')
  const bits = nodes
    .filter(({ kind }) => kind === 'MatMulNBits')
    .map(({ attributes }) => attributes.get('bits') ?? 4)
  // A mixed export has more bits in a few layers.
  const dtype = BITS_DTYPES[Math.min(...bits)]
  if (dtype) return halves && dtype !== 'q8' ? (`${dtype}f16` as Dtype) : dtype
  if (has(/^MatMulBnb4$/)) return 'bnb4'
  if (has(/^(MatMulInteger|MatMulIntegerToFloat|DynamicQuantizeMatMul|QLinearMatMul)$/)) return 'q8'
  return halves ? 'fp16' : 'fp32'
}

/** Files and facts that the variants of a folder share. */
interface Source {
  /** Files of the configuration and the tokenizer. */
  texts: readonly Item[]
  config: Config
  seesImages: boolean
  /** `true` for a chat model; by default, the graphs and the configuration tell. */
  isChat?: boolean
  /** Precisions that are known to be incomplete. Default: none. */
  unfit?: Unfit
}

interface PlannedVariant extends Variant {
  /** The decoder, or the only graph. */
  model: OnnxModel
  items: Item[]
}

/** Architectures that continue text, with or without a KV cache among the inputs of their graphs. */
const CAUSAL = /(ForCausalLM|LMHeadModel)$/

/** Precisions that cannot run, with the reason. */
type Unfit = Map<Dtype, InoriginError>

async function planVariants(
  folder: Folder,
  variants: readonly Variant[],
  source: Source,
  options: PlanOptions,
): Promise<Plan> {
  const { texts, config, seesImages } = source
  const { planned, models, unfit } = await readVariants(folder, variants, source, options)
  if (!isChat(source, planned))
    return planPredictorVariants(folder, planned, source, unfit, options)
  refuseTensors(options)
  const limits = toTokenLimits(
    { maxInputTokens: null, maxOutputTokens: null },
    findContextTokens(config),
  )
  const capabilities = {
    ...(await capabilitiesOf(folder)),
    ...(seesImages && { imageInput: true }),
  }
  const read = await checkTexts(folder, texts, seesImages)
  const fit = await filterFit(planned, unfit, async (variant) => {
    checkGraphs(folder, variant.items, models, read)
    return variant
  })
  if (fit.length === 0) throw noneFit(folder, unfit)
  return {
    entry: { type: 'model', name: titleOf(folder.nameOf('')), ...limits, capabilities },
    implementations: fit.map((variant) => variantToPlanned(variant)),
    notes: [...(seesImages ? [] : noteUnreadImages(config)), ...noteUnfit(unfit)],
  }
}

/** Resolves with the variants whose graphs can run, of which there is at least one. */
async function readVariants(
  folder: Folder,
  variants: readonly Variant[],
  { texts, unfit: before }: Source,
  { readGraph = readChecked }: PlanOptions,
) {
  const models = new Map<string, OnnxModel>()
  const unfit: Unfit = new Map(before)
  const planned = await filterFit(variants, unfit, async (variant) => {
    const items = [...texts]
    let model: OnnxModel | undefined
    for (const { path } of variant.files.filter((file) => file.path.endsWith('.onnx'))) {
      model = models.get(path) ?? (await readGraph(folder, path))
      models.set(path, model)
      items.push(...itemsOf(folder, path, model).map((item) => ({ ...item, name: item.path })))
    }
    return model ? { ...variant, model, items } : null
  })
  if (planned.length === 0) throw noneFit(folder, unfit)
  return { planned, models, unfit }
}

/** Returns `true` for a language model, by what is known of it or by its graphs. */
const isChat = (source: Source, planned: readonly PlannedVariant[]): boolean =>
  source.isChat === true || isCausal(source.config) || planned.some(({ model }) => isDecoder(model))

/** Returns `true` if the configuration is that of a model which continues text. */
export const isCausal = (config: Config): boolean =>
  [config['architectures']].flat().some((name) => CAUSAL.test(String(name)))

async function planPredictorVariants(
  folder: Folder,
  planned: readonly PlannedVariant[],
  { config }: Source,
  unfit: Unfit,
  options: PlanOptions,
): Promise<Plan> {
  const [best] = planned
  if (!best) throw noneFit(folder, unfit)
  const plan = await planPredictor(folder, best, planned, config, options)
  return { ...plan, notes: [...plan.notes, ...noteUnfit(unfit)] }
}

/** Resolves with the results for the variants that can run. Adds the precisions of others to `unfit`. */
async function filterFit<One extends Variant, Result>(
  variants: readonly One[],
  unfit: Unfit,
  check: (variant: One) => Promise<Result | null>,
): Promise<Result[]> {
  const results: Result[] = []
  for (const variant of variants) {
    if (unfit.has(variant.dtype)) continue
    try {
      const result = await check(variant)
      if (result !== null) results.push(result)
    } catch (thrown) {
      const error = InoriginError.from(thrown)
      if (error.kind !== 'invalid_request') throw thrown
      unfit.set(variant.dtype, error)
    }
  }
  return results
}

const noteUnfit = (unfit: Unfit): string[] =>
  Array.from(unfit, ([dtype, { message }]) => `${dtype} was left out: ${message}`)

/** Returns the error for a folder of which no precision can run. */
function noneFit(folder: Folder, unfit: Unfit): InoriginError {
  const [first, ...others] = unfit.values()
  if (!first) return refuse(`${folder.nameOf('')} has no graph.`, 'Check its files.')
  if (others.length === 0) return first
  const list = Array.from(unfit, ([dtype, { message }]) => `\n- ${dtype}: ${message}`).join('')
  const what = `No precision of ${folder.nameOf('')} can run:${list}`
  return new InoriginError('invalid_request', what, { cause: first })
}

/** Returns a note if the model sees images in a way that no engine reads. */
function noteUnreadImages({ model_type: type, vision_config: vision }: Config): string[] {
  if (vision === undefined) return []
  const supported = VISION_MODEL_TYPES.join(', ')
  const reason = VISION_MODEL_TYPES.includes(String(type))
    ? 'the folder has no onnx/vision_encoder*.onnx'
    : `the layout ${JSON.stringify(type)} is not supported (supported: ${supported})`
  return [`The model answers text only: it sees images, but ${reason}.`]
}

const TOKENIZER = 'tokenizer.json'

async function planPredictor(
  folder: Folder,
  best: PlannedVariant,
  planned: readonly PlannedVariant[],
  config: Config,
  options: PlanOptions,
): Promise<Plan> {
  const { wishes } = options
  const files = await readTaskFiles(folder, config)
  const tokenizer = files.hasTokenizer && {
    tokenizer: { name: TOKENIZER, ...toTextLimits(files) },
  }
  checkTensors(best.model, options)
  const draftOf = ({ model }: PlannedVariant) => {
    const base = draftSignature(model, { ...options, ...tokenizer })
    const drafted: ReturnType<typeof draftTask> & Pick<PredictorEntry, 'states'> = draftTask(
      base,
      model,
      files,
      options,
    )
    return wishes ? wishes.apply(drafted, model) : drafted
  }
  const { signature, bindings, notes, ...others } = draftOf(best)
  const { embeddings, rerank, speech, states } = others
  if (speech) assertRunsOnCpu(options.devices)
  const drafted = JSON.stringify([signature, bindings])
  const isSame = (variant: PlannedVariant) => {
    const own = draftOf(variant)
    return JSON.stringify([own.signature, own.bindings]) === drafted
  }
  const able = speech ? planned.filter(({ device }) => device === 'wasm') : planned
  const same = able.filter(isSame)
  const left = able.filter((variant) => !same.includes(variant)).map(({ dtype }) => dtype)
  for (const dtype of new Set(left))
    notes.push(`${dtype} has other inputs or outputs, and was left out.`)
  const tokenizers = Object.values(bindings).flatMap(({ text }) => text?.tokenizer ?? [])
  const isNeeded = ({ name }: Item): boolean =>
    name === TOKENIZER
      ? tokenizers.includes(name)
      : name !== 'tokenizer_config.json' || tokenizers.length > 0
  const letters = listFiles(
    folder,
    tokenizers.filter((name) => name !== TOKENIZER),
    'tokenizer',
  )
  const graph = best.items.find(({ type }) => type === 'onnx')?.path ?? ''
  const labels = wishes?.listItems(folder, graph) ?? []
  const { description } = describedBy(best.model)
  return {
    entry: {
      type: 'predictor',
      name: titleOf(folder.nameOf('')),
      ...(description && { description }),
      ...(embeddings && { embeddings }),
      ...(rerank && { rerank }),
      ...(speech && { speech }),
      ...(states && { states }),
      signature,
    },
    implementations: same.map((variant) => {
      const own = variant.items.filter(isNeeded)
      return variantToPlanned({ ...variant, items: [...own, ...letters, ...labels] }, bindings)
    }),
    notes,
  }
}

/** Maximum number of tokens of a text if the encoder's configuration does not state it. */
const DEFAULT_MAX_TEXT_TOKENS = 512

/** Model families whose positions start after the id of the padding token. */
const OFFSET_POSITION_FAMILIES =
  /^(camembert|data2vec-text|ibert|longformer|mpnet|xmod|(xlm-)?roberta(-.+)?)$/

/** Largest `model_max_length` that is a number of tokens. Files without one have 1e30. */
const MAX_STATED_TOKENS = 1e6

/** Returns how many tokens a text may have, where others are left out, and what fills up a row. */
function toTextLimits({ config, tokenizer, sentence }: TaskFiles) {
  const stated = positive(tokenizer['model_max_length']) ?? Infinity
  const own = positive(sentence['max_seq_length']) ?? stated
  const most = Math.min(own < MAX_STATED_TOKENS ? own : Infinity, maxTextTokens(config))
  const pad = config['pad_token_id']
  return {
    most,
    truncate: tokenizer['truncation_side'] === 'left' ? ('start' as const) : ('end' as const),
    ...(typeof pad === 'number' && pad > 0 && { pad }),
  }
}

/** Returns the maximum number of tokens of a text, by the positions that an encoder has. */
function maxTextTokens(config: Config): number {
  const positions = findContextTokens(config) ?? DEFAULT_MAX_TEXT_TOKENS
  const { model_type: family, pad_token_id: padding = 1 } = config
  const unused =
    OFFSET_POSITION_FAMILIES.test(String(family)) && typeof padding === 'number' ? padding + 1 : 0
  return positions > unused ? positions - unused : positions
}

const variantToPlanned = (
  { dtype, device, features, items }: PlannedVariant,
  bindings?: Implementation['bindings'],
): Planned => toPlanned(`${dtype}-${device}`, device, features.length > 0, items, bindings)
