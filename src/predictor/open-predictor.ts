/** Loads a predictor and runs predictions: inputs by name in, outputs by name out. */
import type { Tensor } from 'onnxruntime-web'
import type { Implementation, PredictorEntry } from '../catalog/schema.ts'
import type { GpuComparison } from '../device/gpu-verdict.ts'
import { requestGpu } from '../device/gpu.ts'
import { gpuRejected } from '../engine/failure.ts'
import type { Files } from '../engine/engine.ts'
import { createYielder } from '../engine/run/yielder.ts'
import type { Ort } from '../engine/onnx/ort.ts'
import { loadRuntime, type Runtime, type Session } from '../engine/onnx/runtime.ts'
import { InoriginError } from '../error.ts'
import type { Device, PredictionResult } from '../types/index.ts'
import { bindSignature, type BoundSignature } from './bind.ts'
import type { ElementData } from '../values/elements.ts'
import { findUnsupportedTensor } from './unsupported-tensor.ts'
import { findGpuShortage, findInputMismatch } from './runtime-errors.ts'
import { throwInvalidInput, throwPredictorUnusable } from '../values/input-errors.ts'
import { type ParsedInput, parseInputs } from './parse-inputs.ts'
import { createGpuCheck, type GpuCheck } from './gpu-check.ts'
import { openReference } from './open-reference.ts'
import { fromTensor, type RawTensor } from './tensor.ts'
import { openTokenizers, tokenizeText } from './text.ts'
import { decodeOutput, encodeInput } from './tensor-codec.ts'
import { unlessAborted } from '../values/unless-aborted.ts'

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
    const session = await openSession(setup, runtime)
    cleanups.push(() => session.release())
    const check =
      device === 'webgpu' && onComparison && createCheck(setup, runtime, session, onComparison)
    if (check) cleanups.push(() => check.release())
    const runUnchecked: GpuCheck['run'] = async (feeds, wanted) => ({
      results: await session.run(feeds, wanted),
      device,
    })
    assertNotAborted(signal)
    const tokenizers = await openTokenizers(entry, implementation, files)
    const bound = bindSignature(entry, implementation, session, tokenizers)
    return createPredictor(setup, runtime.ort, check ? check.run : runUnchecked, bound, close)
  } catch (thrown) {
    await close().catch(() => undefined)
    throw thrown
  }
}

/** Returns the files of the graph and of its weights. */
function getGraphFiles({ entry: { tag }, implementation: { resources }, files }: PredictorSetup) {
  const file = (name: string): Blob =>
    files.get(name) ?? throwPredictorUnusable(tag, `resources.${name}`, 'the file is missing.')
  const [model, ...others] = resources.filter((resource) => resource.type === 'onnx')
  if (!model || others.length)
    throwPredictorUnusable(tag, 'resources', 'exactly one must be of type onnx.')
  const folder = model.name.slice(0, model.name.lastIndexOf('/') + 1)
  const externalData = resources
    .filter((resource) => resource.type === 'data')
    .map(({ name }) => ({ path: name.replace(folder, ''), data: file(name) }))
  return { graph: file(model.name), externalData }
}

function createCheck(
  setup: PredictorSetup,
  runtime: Runtime,
  session: Session,
  onComparison: (comparison: GpuComparison) => void,
): GpuCheck {
  const { graph, externalData } = getGraphFiles(setup)
  return createGpuCheck({
    session,
    openReference: (wanted) =>
      openReference(session, wanted, graph, (adapted) =>
        runtime.createSession(adapted, { externalData, onCpu: true }),
      ),
    onComparison,
  })
}

async function openSession(setup: PredictorSetup, runtime: Runtime): Promise<Session> {
  const { tag } = setup.entry
  const { graph, externalData } = getGraphFiles(setup)
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
  { entry: { tag, signature } }: PredictorSetup,
  ort: Ort,
  runGraph: GpuCheck['run'],
  bound: BoundSignature,
  close: () => Promise<void>,
): OpenPredictor {
  const wanted = bound.outputs.map((output) => output.tensor)
  const yielder = createYielder()
  let last: Promise<unknown> = Promise.resolve()
  let closing: Promise<void> | null = null

  async function run(
    checked: ReadonlyMap<string, ParsedInput>,
    signal: AbortSignal,
  ): Promise<Pick<PredictionResult, 'outputs' | 'device'>> {
    const tensors: Tensor[] = []
    try {
      const feeds: Record<string, Tensor> = {}
      for (const { parameter, tensor, spec } of bound.inputs) {
        const value = checked.get(parameter.name)
        if (!value) continue
        const path = `inputs.${parameter.name}`
        for (const [name, raw] of await encodeInput(value, tensor, spec, path)) {
          tensors.push((feeds[name] = toTensor(ort, raw)))
        }
      }
      assertNotAborted(signal)
      const { results, device } = await runGraph(feeds, wanted).catch(rethrowRunError)
      tensors.push(...Object.values(results))
      const outputs = bound.outputs.map(({ parameter, tensor, spec }) => {
        const result = results[tensor]
        if (!result) throw new InoriginError('internal', `The model returned no ${tensor}.`)
        return [parameter.name, decodeOutput(parameter, fromTensor(result), spec)] as const
      })
      return { outputs: Object.fromEntries(outputs), device }
    } finally {
      for (const tensor of tensors) tensor.dispose()
    }
  }

  async function predict(
    checked: ReadonlyMap<string, ParsedInput>,
    signal: AbortSignal,
  ): Promise<PredictionResult> {
    assertNotAborted(signal)
    if (closing) throw new InoriginError('unavailable', `${tag} has been unloaded. Load it again.`)
    const start = performance.now()
    const queued = last.then(async () => {
      // The pause lets the worker receive abort messages between two runs.
      await yielder.next()
      assertNotAborted(signal)
      return run(checked, signal)
    })
    last = queued.catch(() => undefined)
    const { outputs, device } = await unlessAborted(queued, signal, () => cancelledError(signal))
    return { tag, outputs, latency: performance.now() - start, device }
  }

  return {
    async predict(inputs, signal) {
      assertNotAborted(signal)
      return predict(parseInputs(signature, inputs), signal)
    },
    tokenize(name, text, path) {
      const spec = bound.inputs.find(({ parameter }) => parameter.name === name)?.spec.text
      return spec
        ? tokenizeText(text, spec, path)
        : throwPredictorUnusable(tag, `inputs.${name}`, 'takes no text.')
    },
    async predictTokens(name, rows, signal) {
      const inputs = signature.inputs.filter((parameter) => parameter.name !== name)
      const checked = parseInputs({ ...signature, inputs }, {})
      return predict(checked.set(name, { form: 'tokens', rows }), signal)
    },
    close() {
      closing ??= last.then(() => {
        yielder.close()
        return close()
      })
      return closing
    },
  }
}

function toTensor(ort: Ort, { type, data, shape }: RawTensor): Tensor {
  return type === 'string'
    ? new ort.Tensor(type, data as string[], shape)
    : new ort.Tensor(type, data as Exclude<ElementData, string[]>, shape)
}

/** Rethrows a runtime error, as `invalid_request` if the model rejected the inputs. */
function rethrowRunError(thrown: unknown): never {
  const error = InoriginError.from(thrown)
  const rejection = error.kind === 'internal' ? findInputMismatch(error.message) : null
  if (rejection !== null)
    throwInvalidInput('inputs', `the model rejected them: ${rejection}`, thrown)
  const shortage = error.kind === 'internal' ? findGpuShortage(error.message) : null
  throw shortage === null ? error : gpuRejected(shortage, thrown)
}

function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelledError(signal)
}

function cancelledError(signal: AbortSignal): InoriginError {
  return new InoriginError('aborted', 'The prediction was canceled.', { cause: signal.reason })
}
