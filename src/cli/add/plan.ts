/** From files to a catalog entry that is complete but for lengths and hashes. */
import { join } from 'node:path'
import { contextOf } from '../../catalog/context.ts'
import { limitsOf } from '../../catalog/hub/entry.ts'
import { findVariants, TEXTS } from '../../catalog/hub/layout.ts'
import type { Dtype, Implementation, ModelEntry, PredictorEntry } from '../../catalog/schema.ts'
import type { Device } from '../../types/index.ts'
import { checkModel } from '../onnx/check.ts'
import { type OnnxModel, readModel } from '../onnx/model.ts'
import { refuse } from '../onnx/refuse.ts'
import { draftSignature } from './draft.ts'
import { capabilitiesOf, MEMORY_FACTOR, readJson, titleOf } from './facts.ts'
import { planMlc } from './mlc.ts'
import { type Item, itemsOf, type Source } from './source.ts'

/** An implementation whose files are still to be copied. */
export interface Planned extends Omit<Implementation, 'resources'> {
  items: Item[]
}

export interface Plan {
  entry:
    | Omit<ModelEntry, 'implementations' | 'tag' | 'created'>
    | Omit<PredictorEntry, 'implementations' | 'tag' | 'created'>
  implementations: Planned[]
  /** What its author should look at, a sentence each. */
  notes: string[]
}

export interface PlanOptions {
  devices: readonly Device[]
  /** Precisions of a folder to take; `null`: all that are there. */
  dtypes: readonly Dtype[] | null
  tensors: ReadonlySet<string>
}

/** Tokens of a text where its encoder does not say. */
const MOST_TOKENS = 512

export async function makePlan(source: Source, options: PlanOptions): Promise<Plan> {
  if (source.kind === 'layout') return planLayout(source, options)
  refuseDtypes(options)
  if (source.kind === 'mlc') {
    refuseTensors(options)
    if (options.devices.includes('webgpu')) return planMlc(source)
    throw refuse('--device wasm: a model compiled by MLC runs on WebGPU alone.', 'Leave it out.')
  }
  const { path } = source
  const model = await readModel(path)
  checkModel(model, path)
  const { signature, bindings, notes } = draftSignature(model, options)
  checkTensors(model, options)
  const items = itemsOf(path, model)
  if (isDecoder(model)) {
    notes.push(
      'This graph is the decoder of a language model. To chat with it, add the folder that also has ' +
        'its config.json and tokenizer.json.',
    )
  }
  return {
    entry: { type: 'predictor', name: titleOf(path), ...describedBy(model), signature },
    implementations: options.devices.map((device) =>
      implementation(device, device, model.usesHalves, items, bindings),
    ),
    notes,
  }
}

async function planLayout(
  { folder, files }: Source & { kind: 'layout' },
  { devices, dtypes, tensors }: PlanOptions,
): Promise<Plan> {
  const variants = findVariants(files, dtypes).filter(({ device }) => devices.includes(device))
  if (variants.length === 0) {
    const wanted = dtypes ? ` in ${dtypes.join(' or ')}` : ''
    throw refuse(`${folder} has no onnx/model*.onnx${wanted} for ${devices.join(' or ')}.`, 'Look at its files.')
  }
  const models = new Map<string, OnnxModel>()
  for (const { path } of variants.flatMap((variant) => variant.files)) {
    if (!path.endsWith('.onnx') || models.has(path)) continue
    const model = await readModel(join(folder, path))
    checkModel(model, join(folder, path))
    models.set(path, model)
  }
  const config = readJson(join(folder, 'config.json'))
  const texts = TEXTS.flatMap(({ path, type }): Item[] => {
    const file = files.find((one) => one.path === path)
    return file ? [{ type, name: path, path: join(folder, path), bytes: file.bytes }] : []
  })
  const planned = variants.map((variant) => {
    const graphs = variant.files.filter(({ path }) => path.endsWith('.onnx'))
    const weights = graphs.flatMap(({ path }) => inFolder(path, itemsOf(join(folder, path), modelOf(path))))
    return { ...variant, model: modelOf(graphs.at(-1)?.path ?? ''), items: [...texts, ...weights] }
  })
  const [best] = planned
  const name = titleOf(folder)
  if (best && isDecoder(best.model)) {
    refuseTensors({ tensors })
    const { maxInputTokens, maxOutputTokens } = limitsOf(
      { maxInputTokens: null, maxOutputTokens: null }, contextOf(config),
    )
    return {
      entry: { type: 'model', name, maxInputTokens, maxOutputTokens, capabilities: capabilitiesOf(folder, files) },
      implementations: planned.map(({ dtype, device, features, items }) =>
        implementation(`${dtype}-${device}`, device, features.length > 0, items),
      ),
      notes: [],
    }
  }

  const tokenizer = { name: 'tokenizer.json', most: mostTokens(config) }
  const drafts = planned.map((variant) => draftSignature(variant.model, { tensors, tokenizer }))
  const [draft] = drafts
  if (!best || !draft) throw refuse(`${folder} has no graph.`, 'Look at its files.')
  checkTensors(best.model, { tensors })
  const same = planned.filter((_, at) => alike(drafts[at]?.signature, draft.signature))
  const others = planned.filter((variant) => !same.includes(variant)).map(({ dtype }) => dtype)
  return {
    entry: { type: 'predictor', name, ...describedBy(best.model), signature: draft.signature },
    implementations: same.map(({ dtype, device, features, items }) =>
      implementation(`${dtype}-${device}`, device, features.length > 0, items, draft.bindings),
    ),
    notes: [
      ...draft.notes,
      ...[...new Set(others)].map((dtype) => `${dtype} has other inputs or outputs, and was left out.`),
    ],
  }

  function modelOf(path: string): OnnxModel {
    const model = models.get(path)
    if (!model) throw refuse(`${folder} has no ${path}.`, 'Look at its files.')
    return model
  }
}

/** Families whose positions begin behind the id that rows are filled up with. */
const BEHIND = /^(camembert|data2vec-text|ibert|longformer|mpnet|xmod|(xlm-)?roberta(-.+)?)$/

/** Tokens of a text that an encoder has positions for. */
function mostTokens(config: Readonly<Record<string, unknown>>): number {
  const positions = contextOf(config) ?? MOST_TOKENS
  const { model_type: family, pad_token_id: filling = 1 } = config
  const unused = BEHIND.test(String(family)) && typeof filling === 'number' ? filling + 1 : 0
  return positions > unused ? positions - unused : positions
}

function implementation(
  id: string,
  device: Device,
  usesHalves: boolean,
  items: Item[],
  bindings?: Implementation['bindings'],
): Planned {
  const weights = items.filter(({ type }) => type === 'onnx' || type === 'data')
  const memory = Math.ceil(weights.reduce((sum, { bytes }) => sum + bytes, 0) * MEMORY_FACTOR)
  const features = device === 'webgpu' && usesHalves ? ['shader-f16'] : []
  return {
    id, engine: 'onnx', device,
    requires: { ...(features.length > 0 && { features }), memory },
    ...(bindings && { bindings }),
    items,
  }
}

/** A decoder keeps what it has computed of the tokens before. */
function isDecoder({ inputs, outputs }: OnnxModel): boolean {
  return (
    inputs.some(({ name }) => name.startsWith('past_')) ||
    outputs.some(({ name }) => name.startsWith('present'))
  )
}

function refuseDtypes({ dtypes }: Pick<PlanOptions, 'dtypes'>): void {
  if (dtypes === null) return
  throw refuse('--dtypes chooses among the graphs of a folder, and this is one model.', 'Leave it out.')
}

function refuseTensors({ tensors }: Pick<PlanOptions, 'tensors'>): void {
  if (tensors.size === 0) return
  throw refuse('--tensor is for the inputs of predictors, and this is a chat model.', 'Leave it out.')
}

function checkTensors({ inputs }: OnnxModel, { tensors }: Pick<PlanOptions, 'tensors'>): void {
  const names = inputs.map(({ name }) => name)
  for (const tensor of tensors) {
    if (names.includes(tensor)) continue
    throw refuse(`--tensor ${tensor}: there is no such input.`, `There is ${names.join(', ') || 'none'}.`)
  }
}

function describedBy({ description }: OnnxModel): { description?: string } {
  return description.trim() ? { description: description.trim() } : {}
}

/** Names of files by the folder that graph is in. */
function inFolder(graph: string, items: readonly Item[]): Item[] {
  const folder = graph.slice(0, graph.lastIndexOf('/') + 1)
  return items.map((item) => ({ ...item, name: folder + item.name }))
}

function alike(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
