/** Runs the calls of a predictor one after the other. A call may need several runs of its graph. */
import type { Tensor } from 'onnxruntime-web'
import type { PredictorEntry } from '../catalog/schema.ts'
import { gpuRejected } from '../engine/failure.ts'
import type { Ort } from '../engine/onnx/tensor.ts'
import { Yielder } from '../engine/run/yielder.ts'
import { InoriginError } from '../error.ts'
import type { Device, SessionPrediction } from '../types/index.ts'
import { ARRAYS, countElements, type ElementData, isElementType } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { unlessAborted } from '../values/promises.ts'
import type { BoundOutput, BoundSignature } from './bind.ts'
import { type Carried, type PlannedRuns, toNextTensors } from './carry.ts'
import type { GpuCheck } from './gpu-check.ts'
import type { ParsedInput } from './parse-inputs.ts'
import { decodeOutput, encodeInput } from './tensor-codec.ts'
import { fromTensor, type RawTensor } from './tensor.ts'

interface PlanRunnerOptions {
  entry: Pick<PredictorEntry, 'tag'>
  /** Device of predictions, unless `run` reports another one. */
  device: Device
  ort: Ort
  run: RunGraph
  bound: BoundSignature
  /** Frees the model. */
  close(): Promise<void>
}

type RunGraph = GpuCheck['run']

/** Runs plans in their order. */
export class PlanRunner {
  readonly #options: PlanRunnerOptions
  readonly #yielder = new Yielder()
  #last: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | null = null

  constructor(options: PlanRunnerOptions) {
    this.#options = options
  }

  /**
   * Runs a plan in its turn, from the state `carried`; `null` for a call on its own. An invalid plan
   * rejects at once.
   */
  async run(
    planned: Promise<PlannedRuns>,
    carried: Carried | null,
    signal: AbortSignal,
  ): Promise<SessionPrediction> {
    const { tag } = this.#options.entry
    const planning = planned.then((plan) => ({ plan, start: performance.now() }))
    // The turn reports the same error later.
    planning.catch(() => undefined)
    assertNotAborted(signal)
    if (this.#closing)
      throw new InoriginError('unavailable', `${tag} has been unloaded. Load it again.`)
    const queued = this.#last.then(async () => this.#runAll((await planning).plan, carried, signal))
    this.#last = queued.catch(() => undefined)
    const done = Promise.all([planning, queued])
    const [{ start }, ran] = await unlessAborted(done, signal, () => cancelledError(signal))
    return { tag, ...ran, latency: performance.now() - start }
  }

  /** Frees the model after the current run. */
  close(): Promise<void> {
    this.#closing ??= this.#last.then(() => {
      this.#yielder.close()
      return this.#options.close()
    })
    return this.#closing
  }

  async #runAll(planned: PlannedRuns, carried: Carried | null, signal: AbortSignal) {
    const { ort, run, bound } = this.#options
    let { device } = this.#options
    let tensors = carried?.tensors ?? {}
    const runs: Map<string, RawTensor>[] = []
    for (let index = 0; index < planned.count; index++) {
      // The pause lets the worker receive abort messages between two runs.
      await this.#yielder.next()
      assertNotAborted(signal)
      const ran = await runGraph(ort, run, bound, planned.check(index, tensors), signal)
      device = ran.device
      tensors = toNextTensors(bound.states, ran.outputs)
      runs.push(ran.outputs)
    }
    const outputs = decodeRuns(bound, runs, planned.isWindowed, carried !== null)
    const state = { tensors, sound: planned.sound ?? carried?.sound ?? null }
    return { outputs, state, device }
  }
}

type Run = ReadonlyMap<string, RawTensor>

/**
 * Returns the values by name of the output. Windowed runs give tensors with a first dimension for
 * the windows, or arrays of other values; states have the value after the last run. A session
 * carries its states, so `hidesStates` leaves them out.
 */
function decodeRuns(
  { outputs, states }: BoundSignature,
  runs: readonly Run[],
  isWindowed: boolean,
  hidesStates: boolean,
): Record<string, unknown> {
  const isState = ({ parameter }: BoundOutput) =>
    states.some(({ output }) => output === parameter.name)
  return Object.fromEntries(
    outputs
      .filter((output) => !hidesStates || !isState(output))
      .map((output) => {
        const tensors = runs.flatMap((run) => run.get(output.parameter.name) ?? [])
        const value =
          isWindowed && !isState(output)
            ? joinWindows(output, tensors)
            : decodeLast(output, tensors)
        return [output.parameter.name, value]
      }),
  )
}

function decodeLast({ parameter, spec }: BoundOutput, tensors: readonly RawTensor[]): unknown {
  const last = tensors.at(-1)
  return last && decodeOutput(parameter, last, spec)
}

function joinWindows({ parameter, type, spec }: BoundOutput, tensors: readonly RawTensor[]) {
  const [first] = tensors
  const isSame = tensors.every(({ shape }) => shape.join() === first?.shape.join())
  if (!isElementType(parameter.type) || type === 'string' || spec.steps || !isSame)
    return tensors.map((tensor) => decodeOutput(parameter, tensor, spec))
  const shape = [tensors.length, ...(first?.shape ?? [])]
  const data = new ARRAYS[type](countElements(shape))
  let at = 0
  for (const tensor of tensors) {
    setElements(data, tensor.data, at)
    at += tensor.data.length
  }
  return decodeOutput(parameter, { type, data, shape: shape.length > 1 ? shape : [0, 0] }, spec)
}

function setElements(target: ElementData, source: ElementData, at: number): void {
  if (target instanceof BigInt64Array || target instanceof BigUint64Array)
    target.set(source as BigInt64Array, at)
  else if (!Array.isArray(target)) target.set(source as Exclude<typeof target, string[]>, at)
}

/**
 * Runs the graph with `run`. Resolves with the tensors of the declared outputs by name, and with the
 * device that computed them. Rejects with `invalid_request` if the model rejects the inputs, with
 * `aborted`, and with `gpu_untrusted` if `run` finds that the GPU computes wrong numbers.
 */
async function runGraph(
  ort: Ort,
  run: RunGraph,
  { inputs, outputs }: BoundSignature,
  checked: ReadonlyMap<string, ParsedInput>,
  signal: AbortSignal,
): Promise<{ outputs: Map<string, RawTensor>; device: Device }> {
  const wanted = outputs.map(({ tensor }) => tensor)
  const tensors: Tensor[] = []
  try {
    const feeds: Record<string, Tensor> = {}
    for (const { parameter, tensor, spec } of inputs) {
      const value = checked.get(parameter.name)
      if (!value) continue
      const path = `inputs.${parameter.name}`
      for (const [name, raw] of await encodeInput(value, tensor, spec, path))
        tensors.push((feeds[name] = toTensor(ort, raw)))
    }
    assertNotAborted(signal)
    const { results, device } = await run(feeds, wanted).catch(rethrowRunError)
    tensors.push(...Object.values(results))
    const named = outputs.map(({ parameter, tensor }) => {
      const result = results[tensor]
      if (!result) throw new InoriginError('internal', `The model returned no ${tensor}.`)
      return [parameter.name, fromTensor(result)] as const
    })
    return { outputs: new Map(named), device }
  } finally {
    for (const tensor of tensors) tensor.dispose()
  }
}

const toTensor = (ort: Ort, { type, data, shape }: RawTensor) =>
  type === 'string'
    ? new ort.Tensor(type, data as string[], shape)
    : new ort.Tensor(type, data as Exclude<ElementData, string[]>, shape)

/** Rethrows a runtime error, as `invalid_request` if the model rejected the inputs. */
function rethrowRunError(thrown: unknown): never {
  const error = InoriginError.from(thrown)
  const rejection = error.kind === 'internal' ? findInputMismatch(error.message) : null
  if (rejection !== null)
    throwInvalidInput('inputs', `the model rejected them: ${rejection}`, thrown)
  const shortage = error.kind === 'internal' ? findGpuShortage(error.message) : null
  throw shortage === null ? error : gpuRejected(shortage, thrown)
}

/** Throws `aborted` if the signal has aborted. */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelledError(signal)
}

const cancelledError = (signal: AbortSignal) =>
  new InoriginError('aborted', 'The prediction was canceled.', { cause: signal.reason })

// Tells inputs that a model rejects from a runtime that fails, by the runtime's message.

/** Messages of the runtime's check of inputs, and its code for arguments that a kernel rejects. */
const REJECTED_INPUT = /invalid dimensions|invalid.argument|ERROR_CODE: 2\b/i
/** Error code of the runtime that includes, among others, lengths that do not match. */
const GENERIC_FAILURE = /ERROR_CODE: 1\b/i
const LENGTH_WORDS = /broadcast|reshape|dimension|shape/i
/** Path of the runtime's sources for GPUs. */
const GPU_SOURCE = /providers\/webgpu\//i

/**
 * Returns the runtime's message about rejected inputs, without the location in its sources. Returns
 * `null` for any other message.
 */
export function findInputMismatch(message: string): string | null {
  const reason = withoutSourceLocation(message)
  const isAboutLengths = GENERIC_FAILURE.test(message) && LENGTH_WORDS.test(reason)
  return REJECTED_INPUT.test(message) || isAboutLengths ? reason : null
}

/** Returns the message about a GPU that lacks what the model needs, such as buffers, or `null`. */
export const findGpuShortage = (message: string): string | null =>
  GPU_SOURCE.test(message) && findInputMismatch(message) === null
    ? withoutSourceLocation(message)
    : null

/** Removes source locations, because function names there could match the patterns above. */
const withoutSourceLocation = (message: string) =>
  message
    .replace(/^.*?ERROR_MESSAGE:\s*/s, '')
    .replace(/^.*?Status Message:\s*/s, '')
    .replace(/^.*?was false\.\s*/s, '')
    .trim()
