/**
 * Loads a predictor and runs predictions: inputs by name in, outputs by name out. Errors name the
 * input, or the part of the catalog entry, that is wrong. Files of this folder import the ONNX
 * engine, the catalog, the device and values, but nothing of a host.
 */
import type { Implementation, PredictorEntry } from '../catalog/schema.ts'
import type { GpuComparison } from '../device/gpu-verdict.ts'
import { requestGpu } from '../device/gpu.ts'
import type { Files } from '../engine/engine.ts'
import { pruneGraph, readOperations } from '../engine/onnx/graph-file.ts'
import { createWindow, fieldsOfGraph, valuesOf } from '../engine/onnx/protobuf.ts'
import { loadRuntime, type Runtime, type Session } from '../engine/onnx/runtime.ts'
import type { Device, PredictionResult, SessionPrediction, Tag } from '../types/index.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import { bindSignature, type BoundSignature } from './bind.ts'
import { type Carried, type PlannedRuns, planRuns } from './carry.ts'
import { type ChoiceSource, findChoiceSource, withOutputs } from './chosen-from.ts'
import { GpuCheck, type ReferenceSession } from './gpu-check.ts'
import { openLabels } from './labels.ts'
import { parseInputs } from './parse-inputs.ts'
import { assertNotAborted, PlanRunner } from './run-plan.ts'
import { openTokenizers, tokenizeText } from './text.ts'

/** Options of {@link openPredictor}. They can be posted to the worker that runs the predictor. */
export interface PredictorSetup {
  entry: PredictorEntry
  /** Chosen implementation of the entry. */
  implementation: Implementation
  files: Files
  device: Device
  /** URL of the folder with the runtime's wasm files, with a trailing slash. */
  runtime: string
  /** Number of WASM threads of a page that can have several. Default: a guess. */
  threads?: number
}

/** Loaded predictor. */
export interface OpenPredictor {
  /**
   * Runs one prediction; concurrent calls are queued. Rejects with `invalid_request` that names the
   * invalid input. Rejects with `aborted` at once, although a run that has started still completes.
   */
  predict(inputs: unknown, signal: AbortSignal): Promise<PredictionResult>
  /**
   * Runs the next prediction of a session, from the state of the one before; `null` for the first.
   * It rejects like {@link predict}.
   */
  predictNext(
    inputs: unknown,
    carried: Carried | null,
    signal: AbortSignal,
  ): Promise<SessionPrediction>
  /**
   * Tokenizes a text for the input of that name. Throws `invalid_request` that names `path` if the
   * tokenizer cannot encode it.
   */
  tokenize(name: string, text: string, path: string): readonly number[]
  /** Runs one prediction from tokenized texts. The other inputs get their defaults. */
  predictTokens(
    name: string,
    rows: readonly (readonly number[])[],
    signal: AbortSignal,
  ): Promise<PredictionResult>
  /** Frees the model after the current prediction. */
  close(): Promise<void>
}

/**
 * Loads a predictor. Rejects with `unavailable` if its files, its entry or the device cannot be
 * used, after freeing everything. With `onComparison`, which receives the result, its first outputs
 * on `webgpu` are compared with those of the CPU.
 */
export async function openPredictor(
  setup: PredictorSetup,
  signal?: AbortSignal,
  onComparison?: (comparison: GpuComparison) => void,
): Promise<OpenPredictor> {
  const { entry, implementation, files, device, runtime: folder, threads } = setup
  const cleanups: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const step of cleanups.toReversed()) await step()
  }
  try {
    assertNotAborted(signal)
    const gpu = device === 'webgpu' ? (await requestGpu(implementation.requires)).device : undefined
    cleanups.push(() => gpu?.destroy())
    const runtime = await loadRuntime({ device, folder, gpu, threads })
    cleanups.push(() => runtime.release())
    assertNotAborted(signal)
    const graphFiles = await getGraphFiles(setup)
    const session = await openSession(entry.tag, graphFiles, runtime)
    cleanups.push(() => session.release())
    const check =
      device === 'webgpu' && onComparison && createCheck(graphFiles, runtime, session, onComparison)
    if (check) cleanups.push(() => check.release())
    const run: GpuCheck['run'] = check
      ? (feeds, wanted) => check.run(feeds, wanted)
      : async (feeds, wanted) => ({ results: await session.run(feeds, wanted), device })
    assertNotAborted(signal)
    const [tokenizers, labels] = await Promise.all([
      openTokenizers(entry, implementation, files),
      openLabels(entry, implementation, files),
    ])
    const bound = bindSignature(entry, implementation, session, { tokenizers, labels })
    const runner = new PlanRunner({ entry, device, ort: runtime.ort, run, bound, close })
    return createPredictor(entry, bound, runner)
  } catch (thrown) {
    await close().catch(() => undefined)
    throw thrown
  }
}

interface GraphFiles {
  graph: Blob
  externalData: { path: string; data: Blob }[]
}

/** Resolves with the graph, of which only the declared outputs are computed, and with its weights. */
async function getGraphFiles({
  entry: { tag, signature },
  implementation: { resources, bindings = {} },
  files,
}: PredictorSetup): Promise<GraphFiles> {
  const file = (name: string) =>
    files.get(name) ?? throwPredictorUnusable(tag, `resources.${name}`, 'the file is missing.')
  const [model, ...others] = resources.filter((resource) => resource.type === 'onnx')
  if (!model || others.length)
    throwPredictorUnusable(tag, 'resources', 'exactly one must be of type onnx.')
  const folder = model.name.slice(0, model.name.lastIndexOf('/') + 1)
  const externalData = resources
    .filter((resource) => resource.type === 'data')
    .map(({ name }) => ({ path: name.replace(folder, ''), data: file(name) }))
  const declared = signature.outputs.map(({ name }) => bindings[name]?.tensor ?? name)
  return { graph: await pruneGraph(file(model.name), new Set(declared)), externalData }
}

const createCheck = (
  { graph, externalData }: GraphFiles,
  runtime: Runtime,
  session: Session,
  onComparison: (comparison: GpuComparison) => void,
): GpuCheck =>
  new GpuCheck({
    session,
    openReference: (wanted) =>
      openReference(session, wanted, graph, (adapted) =>
        runtime.createSession(adapted, { externalData, onCpu: true }),
      ),
    onComparison,
  })

async function openSession(tag: Tag, { graph, externalData }: GraphFiles, runtime: Runtime) {
  try {
    return await runtime.createSession(graph, { externalData })
  } catch (thrown) {
    const foreign = await findUnsupportedTensor(graph)
    if (!foreign) throw thrown
    const { side, name, type } = foreign
    const what = `the model's ${name} is ${type}, which the runtime does not support in browsers.`
    return throwPredictorUnusable(
      tag,
      `${side}.${name}`,
      `${what} Cast it inside the model.`,
      thrown,
    )
  }
}

function createPredictor(
  { tag, signature }: PredictorEntry,
  bound: BoundSignature,
  runner: PlanRunner,
): OpenPredictor {
  async function runOnce(planned: Promise<PlannedRuns>, signal: AbortSignal) {
    const { state: _, ...result } = await runner.run(planned, null, signal)
    return result
  }

  return {
    async predict(inputs, signal) {
      assertNotAborted(signal)
      return runOnce(planRuns(bound, signature, inputs, null), signal)
    },
    async predictNext(inputs, carried, signal) {
      assertNotAborted(signal)
      const before = carried ?? { tensors: {}, sound: null }
      return runner.run(planRuns(bound, signature, inputs, before), before, signal)
    },
    tokenize(name, text, path) {
      const spec = bound.inputs.find(({ parameter }) => parameter.name === name)?.spec.text
      return spec
        ? tokenizeText(text, spec, path)
        : throwPredictorUnusable(tag, `inputs.${name}`, 'takes no text.')
    },
    async predictTokens(name, rows, signal) {
      const inputs = signature.inputs.filter((parameter) => parameter.name !== name)
      const checked = parseInputs({ ...signature, inputs }, {}).set(name, { form: 'tokens', rows })
      const planned = { count: 1, isWindowed: false, check: () => checked, sound: null }
      return runOnce(Promise.resolve(planned), signal)
    },
    close: () => runner.close(),
  }
}

/**
 * Resolves with a session on the CPU, with further outputs: what the integer and boolean ones of
 * `wanted` were chosen from. `open` opens one with the graph `model` or
 * an adapted copy of it.
 */
async function openReference(
  gpuSession: Session,
  wanted: readonly string[],
  model: Blob,
  open: (adapted: Blob) => Promise<Session>,
): Promise<ReferenceSession> {
  const chosen = gpuSession.outputs.filter(
    (output) => output.isTensor && wanted.includes(output.name) && !output.type.startsWith('float'),
  )
  const operations = chosen.length > 0 ? await readOperations(model) : []
  const sources = new Map<string, ChoiceSource>()
  for (const { name } of chosen) {
    const source = findChoiceSource(operations, name)
    if (source) sources.set(name, source)
  }
  const listed = new Set(gpuSession.outputs.map(({ name }) => name))
  const added = new Set([...sources.values()].flatMap(({ tensors }) => tensors))
  const extra = [...added].filter((name) => !listed.has(name))
  if (extra.length === 0) return { session: await open(model), sources }
  try {
    return { session: await open(withOutputs(model, extra)), sources }
  } catch {
    // A tensor inside a branch cannot be an output. Without them, all differences count.
    return { session: await open(model), sources: new Map() }
  }
}

// Finds inputs and outputs of a model whose type the runtime does not support in JavaScript.

const GRAPH_SIDES = new Map([
  [11, 'inputs'],
  [12, 'outputs'],
])
const VALUE_FIELDS = { name: 1, type: 2 }
const TYPE_TENSOR = 1
const TENSOR_ELEMENT = 1

/** Names of the unsupported types by their numbers. All types with lower numbers are supported. */
const UNSUPPORTED_TYPES = new Map([
  [14, 'complex64'],
  [15, 'complex128'],
  [16, 'bfloat16'],
  [17, 'float8e4m3fn'],
  [18, 'float8e4m3fnuz'],
  [19, 'float8e5m2'],
  [20, 'float8e5m2fnuz'],
  [21, 'uint4'],
  [22, 'int4'],
  [23, 'float4e2m1'],
  [24, 'float8e8m0'],
  [25, 'uint2'],
  [26, 'int2'],
])

interface UnsupportedTensor {
  side: string
  name: string
  type: string
}

/** Resolves with the first such tensor, or `null` if there is none or the file is not a model. */
async function findUnsupportedTensor(model: Blob): Promise<UnsupportedTensor | null> {
  const file = createWindow(model)
  for await (const { number, from, to } of fieldsOfGraph(file, model.size)) {
    const side = GRAPH_SIDES.get(number)
    if (!side) continue
    const value = await file.read(from, to)
    const type = UNSUPPORTED_TYPES.get(getElementType(value))
    if (type)
      return { side, name: new TextDecoder().decode(getField(value, VALUE_FIELDS.name)), type }
  }
  return null
}

function getElementType(value: Uint8Array): number {
  const tensor = getField(getField(value, VALUE_FIELDS.type), TYPE_TENSOR)
  return getField(tensor, TENSOR_ELEMENT)[0] ?? 0
}

const getField = (bytes: Uint8Array, wanted: number): Uint8Array =>
  valuesOf(bytes, wanted)[0] ?? new Uint8Array(0)
