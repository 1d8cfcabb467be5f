/** Loads a predictor and runs predictions: inputs by name in, outputs by name out. */
import type { Implementation, PredictorEntry } from '../catalog/schema.ts'
import type { GpuComparison } from '../device/gpu-verdict.ts'
import { requestGpu } from '../device/gpu.ts'
import type { Files } from '../engine/engine.ts'
import { pruneGraph } from '../engine/onnx/pruned-graph.ts'
import { loadRuntime, type Runtime, type Session } from '../engine/onnx/runtime.ts'
import type { Device, PredictionResult, SessionPrediction, Tag } from '../types/index.ts'
import { bindSignature } from './bind.ts'
import type { BoundSignature } from './bound.ts'
import { type Carried, type PlannedRuns, planRuns } from './carry.ts'
import { findUnsupportedTensor } from './unsupported-tensor.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import { createGpuCheck, type GpuCheck } from './gpu-check.ts'
import { openLabels } from './labels.ts'
import { openReference } from './open-reference.ts'
import { assertNotAborted } from './run-graph.ts'
import { createPlanRunner, type PlanRunner } from './run-plan.ts'
import { parseInputs } from './parse-inputs.ts'
import { openTokenizers, tokenizeText } from './text.ts'

/** Options of {@link openPredictor}. They can be posted to the worker that runs the predictor. */
export interface PredictorSetup {
  entry: PredictorEntry
  /** Chosen implementation of the entry. */
  implementation: Implementation
  /** Files of the implementation by resource name. */
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
    const runUnchecked: GpuCheck['run'] = async (feeds, wanted) => ({
      results: await session.run(feeds, wanted),
      device,
    })
    assertNotAborted(signal)
    const [tokenizers, labels] = await Promise.all([
      openTokenizers(entry, implementation, files),
      openLabels(entry, implementation, files),
    ])
    const bound = bindSignature(entry, implementation, session, { tokenizers, labels })
    const run = check ? check.run : runUnchecked
    const runner = createPlanRunner({ entry, device, ort: runtime.ort, run, bound, close })
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
  const file = (name: string): Blob =>
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

function createCheck(
  { graph, externalData }: GraphFiles,
  runtime: Runtime,
  session: Session,
  onComparison: (comparison: GpuComparison) => void,
): GpuCheck {
  return createGpuCheck({
    session,
    openReference: (wanted) =>
      openReference(session, wanted, graph, (adapted) =>
        runtime.createSession(adapted, { externalData, onCpu: true }),
      ),
    onComparison,
  })
}

async function openSession(
  tag: Tag,
  { graph, externalData }: GraphFiles,
  runtime: Runtime,
): Promise<Session> {
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
  async function runOnce(
    planned: Promise<PlannedRuns>,
    signal: AbortSignal,
  ): Promise<PredictionResult> {
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
    close: runner.close,
  }
}
