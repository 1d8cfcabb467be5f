/**
 * Checks the GPU for one predictor: its first outputs are compared with those that the same files
 * give on the CPU, from the inputs of callers. Some kernels compute wrong numbers without any error.
 */
import type { Tensor } from 'onnxruntime-web'
import { type GpuComparison, gpuDiffers } from '../device/gpu-verdict.ts'
import type { Session } from '../engine/onnx/runtime.ts'
import { InoriginError } from '../error.ts'
import type { Device } from '../types/index.ts'
import { type ElementType, toReadableData } from '../values/elements.ts'
import {
  type ChoiceSource,
  type ChosenFrom,
  createMargins,
  GROSS_DIFFERENCE,
  MIN_SCALE,
} from './chosen-from.ts'
import { fromTensor, type RawTensor } from './tensor.ts'

type Feeds = Record<string, Tensor>

/** Reasons for which no input is compared any more, and the GPU's self-test must do. */
const UNCOMPARABLE = 'the CPU cannot run the same files, so its outputs were not compared'
const RANDOM = 'the model computes random numbers, so its outputs were not compared'

/** Session on the CPU with the same files. */
export interface ReferenceSession {
  session: Session
  /** Numbers from which integer and boolean outputs were chosen, by output. */
  sources: ReadonlyMap<string, ChoiceSource>
}

interface GpuCheckOptions {
  session: Session
  /** Opens a session on the CPU that also computes what those outputs were chosen from. */
  openReference(wanted: readonly string[]): Promise<ReferenceSession>
  /** Called once with the result of the check. */
  onComparison(comparison: GpuComparison): void
}

/**
 * Runs the graph on both devices until there is a verdict, and frees the session on the CPU then.
 * `run` resolves with the results of the CPU where they differ. It rejects with `gpu_untrusted` once
 * the verdict is that the GPU is wrong. The error has the comparison in its `details`.
 */
export class GpuCheck {
  readonly #options: GpuCheckOptions
  readonly #evidence = new Evidence()
  #comparison: GpuComparison | undefined
  /** Session on the CPU; `undefined` before the first run and after `release`. */
  #reference: Promise<ReferenceSession> | undefined
  /** Results of the CPU for the last input on which both devices agreed. */
  #lastAgreed: ReferenceRun | undefined

  constructor(options: GpuCheckOptions) {
    this.#options = options
  }

  /** The device is the one that computed the results. */
  async run(
    feeds: Feeds,
    wanted: readonly string[],
  ): Promise<{ results: Record<string, Tensor>; device: Device }> {
    if (this.#comparison?.agrees === false) throw gpuDiffers(this.#comparison)
    if (this.#comparison) return this.#runOnGpu(feeds, wanted)
    const run = await this.#compare(feeds, wanted)
    // The comparison itself may have ended the check.
    if (this.#comparison) return run
    const why = this.#evidence.describe()
    if (this.#evidence.isRefuted()) {
      dispose(run.results)
      await this.#conclude({ agrees: false, why })
      throw gpuDiffers({ agrees: false, why })
    }
    if (this.#evidence.isComplete()) await this.#conclude({ agrees: true, why })
    return run
  }

  /** Frees the session on the CPU and its results. */
  async release(): Promise<void> {
    this.#keepAgreed(undefined)
    const opened = await this.#reference?.catch(() => undefined)
    this.#reference = undefined
    await opened?.session.release()
  }

  async #runOnGpu(feeds: Feeds, wanted: readonly string[]) {
    const results = await this.#options.session.run(feeds, wanted)
    return { results, device: 'webgpu' as const }
  }

  /** Runs on both devices. Resolves with the results of the CPU if they differ. */
  async #compare(feeds: Feeds, wanted: readonly string[]) {
    const onGpu = await this.#runOnGpu(feeds, wanted)
    if (this.#lastAgreed && this.#evidence.isKnown(feeds)) {
      const { agreement } = compareRuns(onGpu.results, this.#lastAgreed, wanted)
      if (agreement === 'same') {
        this.#evidence.addRepetition()
        return onGpu
      }
    }
    this.#reference ??= this.#options.openReference(wanted)
    const onCpu = await runReference(this.#reference, feeds, wanted)
    if (!onCpu) {
      await this.#conclude({ agrees: true, why: UNCOMPARABLE, isTransient: true })
      return onGpu
    }
    const { agreement, why } = compareRuns(onGpu.results, onCpu, wanted)
    if (agreement === 'same') {
      this.#evidence.add(feeds, agreement, why)
      this.#keepAgreed(onCpu)
      return onGpu
    }
    dispose(onGpu.results)
    const isRandom = await differsFromItself(onCpu, this.#reference, feeds, wanted)
    if (isRandom) await this.#conclude({ agrees: true, why: RANDOM })
    else this.#evidence.add(feeds, agreement, why)
    return { results: onCpu.results, device: 'wasm' as const }
  }

  async #conclude(found: GpuComparison): Promise<void> {
    this.#comparison = found
    this.#options.onComparison(found)
    await this.release()
  }

  #keepAgreed(run: ReferenceRun | undefined): void {
    if (this.#lastAgreed) dispose(this.#lastAgreed.results)
    this.#lastAgreed = run
  }
}

interface ReferenceRun {
  results: Record<string, Tensor>
  sources: ReadonlyMap<string, ChoiceSource>
}

/** Resolves with the outputs of the CPU, with what they were chosen from; `null` if it fails. */
async function runReference(
  opening: Promise<ReferenceSession>,
  feeds: Feeds,
  wanted: readonly string[],
): Promise<ReferenceRun | null> {
  try {
    const { session, sources } = await opening
    const chosenFrom = [...sources.values()].flatMap(({ tensors }) => tensors)
    const names = [...new Set([...wanted, ...chosenFrom])]
    return { results: await session.run(feeds, names), sources }
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    // The runtime cannot be used after these, on either device.
    if (error.code === 'device_lost' || error.code === 'runtime_crashed') throw error
    return null
  }
}

/** Returns how the outputs agree, by the one that agrees least. */
function compareRuns(
  computed: Record<string, Tensor>,
  { results, sources }: ReferenceRun,
  wanted: readonly string[],
): { agreement: Agreement; why: string } {
  let worst: { agreement: Agreement; why: string } = { agreement: 'same', why: '' }
  for (const name of wanted) {
    const [our, their] = [computed[name], results[name]]
    if (!our || !their) throw new InoriginError('internal', `The model returned no ${name}.`)
    const agreement = compareOutput(name, our, { results, sources })
    if (agreement === 'same' || worst.agreement === 'gross') continue
    if (worst.agreement === agreement) continue
    worst = { agreement, why: describeDifference(name, our, their) }
  }
  return worst
}

function compareOutput(name: string, our: Tensor, { results, sources }: ReferenceRun): Agreement {
  const source = sources.get(name)
  const [first, second] = source?.tensors.map((tensor) => results[tensor]) ?? []
  const their = results[name] ?? our
  if (!source || !first) return compareTensors(fromTensor(our), fromTensor(their))
  const chosen = second
    ? ([fromTensor(first), fromTensor(second)] as const)
    : ([fromTensor(first)] as const)
  const { choice } = source
  return compareTensors(fromTensor(our), fromTensor(their), { choice, tensors: chosen })
}

/** Describes the first elements that are far from each other, for a reader. */
function describeDifference(name: string, our: Tensor, their: Tensor): string {
  const [ours, theirs] = [fromTensor(our).data, fromTensor(their).data]
  if (ours.length !== theirs.length)
    return `${name} has ${ours.length} elements on the GPU and ${theirs.length} on the CPU`
  let at = 0
  let most = 0
  for (let index = 0; index < theirs.length; index += 1) {
    const far = Math.abs(Number(ours[index]) - Number(theirs[index]))
    if (far > most || (Number.isNaN(far) && most < Infinity))
      [at, most] = [index, Number.isNaN(far) ? Infinity : far]
  }
  const show = (value: unknown) =>
    typeof value === 'number' ? String(Number(value.toPrecision(4))) : String(value)
  return `${name}[${at}] is ${show(ours[at])} on the GPU and ${show(theirs[at])} on the CPU`
}

async function differsFromItself(
  first: ReferenceRun,
  reference: Promise<ReferenceSession> | undefined,
  feeds: Feeds,
  wanted: readonly string[],
): Promise<boolean> {
  const again = reference && (await runReference(reference, feeds, wanted))
  if (!again) return false
  const { agreement } = compareRuns(again.results, first, wanted)
  dispose(again.results)
  return agreement !== 'same'
}

function dispose(results: Record<string, Tensor>): void {
  for (const tensor of Object.values(results)) tensor.dispose()
}

// Counts the inputs for which a GPU agreed with the CPU, until that is enough for a verdict.

/** Number of inputs, out of three, that decide: two that agree, or two that differ. */
const DECISIVE_INPUTS = 2

/**
 * Number of runs after which a single input decides, for a caller that only ever sends the same one.
 * Silence never decides.
 */
const MAX_RUNS = 64

interface Copy {
  data: ArrayLike<unknown>
  shape: string
}

type Input = ReadonlyMap<string, Copy>

class Evidence {
  #last: { input: Input; agrees: boolean } | undefined
  /** Inputs of the model that have had several values. With silence, wrong kernels return zeros. */
  readonly #varied = new Set<string>()
  #runs = 0
  #agreeing = 0
  #differing = 0
  #difference = ''

  /** Returns `true` for the input of the last comparison, if both devices agreed. */
  isKnown(feeds: Feeds): boolean {
    return this.#last?.agrees === true && isSameInput(this.#last.input, feeds)
  }

  /** Counts a further run of a known input, on which the GPU computed the same again. */
  addRepetition(): void {
    this.#runs += 1
  }

  /** Adds the comparison of an input; `why` describes the difference. */
  add(feeds: Feeds, agreement: Agreement, why: string): void {
    const isRepeated = this.#last !== undefined && isSameInput(this.#last.input, feeds)
    this.#last = { input: copyOf(feeds), agrees: agreement === 'same' }
    this.#runs += 1
    if (agreement === 'same') {
      const uniform = findUniform(feeds)
      for (const name of Object.keys(feeds)) if (!uniform.includes(name)) this.#varied.add(name)
      if (!isRepeated && uniform.every((name) => this.#varied.has(name))) this.#agreeing += 1
      return
    }
    this.#difference = why
    if (agreement === 'gross') this.#differing = DECISIVE_INPUTS
    else if (!isRepeated) this.#differing += 1
  }

  isComplete(): boolean {
    return this.#agreeing >= (this.#runs < MAX_RUNS ? DECISIVE_INPUTS : 1)
  }

  isRefuted(): boolean {
    if (this.#differing >= DECISIVE_INPUTS) return true
    return this.#runs >= MAX_RUNS && this.#differing > 0 && this.#agreeing < DECISIVE_INPUTS
  }

  /** Returns a description of the verdict, without a period. */
  describe(): string {
    if (this.isRefuted()) return this.#difference
    return `it agrees with the CPU on ${this.#runs} of the first inputs`
  }
}

/** Returns the names of inputs with many numbers that are all the same, such as silence. */
const findUniform = (feeds: Feeds) =>
  Object.entries(feeds)
    .filter(([, { type, data, size }]) => {
      const hasSignal = type.startsWith('float') || type === 'uint8'
      if (!hasSignal || size < 2) return false
      const elements = data as Float32Array
      return elements.every((element) => element === elements[0])
    })
    .map(([name]) => name)

function copyOf(feeds: Feeds): Input {
  const copies = Object.entries(feeds).map(([name, { data, dims }]): [string, Copy] => [
    name,
    { data: (data as Float32Array).slice(), shape: dims.join() },
  ])
  return new Map(copies)
}

const isSameInput = (before: Input, feeds: Feeds) =>
  Object.entries(feeds).every(([name, { data, dims }]) => {
    const old = before.get(name)
    if (old?.shape !== dims.join()) return false
    const elements = data as Float32Array
    return elements.every((element, index) => element === old.data[index])
  })

// Compares tensors that two devices computed from the same inputs.

/**
 * `same`: within the tolerance. `different`: beyond it. `gross`: so far beyond it that rounding
 * cannot be the cause.
 */
type Agreement = 'same' | 'different' | 'gross'

/**
 * Tolerance by type, relative to the largest number of the tensor or slice. Correct kernels on
 * SwiftShader are within 0.00001 in 32 bits, a convolution with a wrong kernel is beyond 1.
 */
const TOLERANCES: Partial<Record<ElementType, number>> = {
  float16: 0.05,
  float32: 0.01,
  float64: 0.01,
}

/**
 * Slices of tensors have a scale of their own, since a tensor may hold coordinates and scores. An
 * axis has slices if it is at most this long, and if they have at least so many elements.
 */
const MAX_SLICES = 256
const MIN_SLICE_ELEMENTS = 16

/**
 * Compares an output with the reference. `source` names the tensors that integers and booleans were
 * chosen from: near-ties there count as the same.
 */
export function compareTensors(computed: RawTensor, reference: RawTensor, source?: ChosenFrom) {
  const isSameShape =
    computed.data.length === reference.data.length &&
    computed.shape.length === reference.shape.length &&
    computed.shape.every((length, axis) => length === reference.shape[axis])
  const tolerance = TOLERANCES[reference.type]
  if (tolerance !== undefined) {
    if (!isSameShape) return 'gross'
    return rate(findLargestDifference(computed, reference, tolerance), tolerance)
  }
  // The number of things that a model finds may depend on one near-tie.
  if (!isSameShape) return 'different'
  return compareChoices(computed, reference, source)
}

const rate = (difference: number, tolerance: number) =>
  difference <= tolerance ? 'same' : difference <= GROSS_DIFFERENCE ? 'different' : 'gross'

/** Returns the largest relative difference of floats: of all of them, or in a slice. */
function findLargestDifference(computed: RawTensor, reference: RawTensor, tolerance: number) {
  const [ours, theirs] = [toNumbers(computed), toNumbers(reference)]
  const whole = findSliceDifference(ours, theirs, theirs.length || 1, 1)
  if (whole > tolerance) return whole
  const { shape } = reference
  let stride = theirs.length
  let largest = whole
  for (const length of shape) {
    stride /= length || 1
    if (length < 2 || length > MAX_SLICES || theirs.length / length < MIN_SLICE_ELEMENTS) continue
    // A difference in one slice never is gross: it may be small beside the others.
    const inSlice = findSliceDifference(ours, theirs, stride, length)
    largest = Math.max(largest, Math.min(inSlice, GROSS_DIFFERENCE))
  }
  return largest
}

/** Returns the largest relative difference in any of the slices, `Infinity` for NaN or Infinity. */
function findSliceDifference(
  ours: ArrayLike<number>,
  theirs: ArrayLike<number>,
  stride: number,
  slices: number,
): number {
  const scales = new Float64Array(slices).fill(MIN_SCALE)
  const differences = new Float64Array(slices)
  for (let index = 0; index < theirs.length; index += 1) {
    const [our, their] = [ours[index] ?? NaN, theirs[index] ?? NaN]
    if (Object.is(our, their) || our === their) {
      if (!Number.isFinite(their)) continue
    } else if (!Number.isFinite(our) || !Number.isFinite(their)) return Infinity
    const slice = Math.floor(index / stride) % slices
    scales[slice] = Math.max(scales[slice] ?? 0, Math.abs(their))
    differences[slice] = Math.max(differences[slice] ?? 0, Math.abs(our - their))
  }
  return differences.reduce(
    (most, difference, slice) => Math.max(most, difference / (scales[slice] ?? MIN_SCALE)),
    0,
  )
}

/** Compares integers, booleans or texts of the same shape. */
function compareChoices(computed: RawTensor, reference: RawTensor, source: ChosenFrom | undefined) {
  const marginAt = source && createMargins(source, computed, reference)
  let worst: Agreement = 'same'
  for (let index = 0; index < reference.data.length; index += 1) {
    if (computed.data[index] === reference.data[index]) continue
    const margin = marginAt?.(index)
    const rated = margin === undefined ? 'different' : rate(margin, toleranceOf(source))
    if (rated === 'gross') return rated
    if (rated === 'different') worst = rated
  }
  return worst
}

const toleranceOf = (source: ChosenFrom | undefined) =>
  (source && TOLERANCES[source.tensors[0].type]) ?? 0

const toNumbers = (tensor: RawTensor) => toReadableData(tensor) as Float32Array | Float64Array
