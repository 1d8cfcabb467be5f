/**
 * Checks the GPU for one predictor: its first outputs are compared with those that the same files
 * give on the CPU, from the inputs of callers. Some kernels compute wrong numbers without any error.
 */
import type { Tensor } from 'onnxruntime-web'
import { type GpuComparison, gpuDiffers } from '../device/gpu-verdict.ts'
import type { Session } from '../engine/onnx/runtime.ts'
import { InoriginError } from '../error.ts'
import type { Device } from '../types/index.ts'
import { type ElementData, type ElementType, toReadableData } from '../values/elements.ts'
import {
  type ChoiceSource,
  type ChosenFrom,
  createMargins,
  GROSS_DIFFERENCE,
  MIN_SCALE,
} from './chosen-from.ts'
import { fitsShape, fromTensor, type RawTensor } from './tensor.ts'

type Feeds = Record<string, Tensor>
type Results = Record<string, Tensor>

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
  ): Promise<{ results: Results; device: Device }> {
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
      const difference = findDifference(onGpu.results, this.#lastAgreed, wanted)
      if (!difference) {
        this.#evidence.addRepetition()
        return onGpu
      }
    }
    const onCpu = await this.#runOnCpu(feeds, wanted)
    if (!onCpu) {
      await this.#conclude({ agrees: true, why: UNCOMPARABLE, isTransient: true })
      return onGpu
    }
    const difference = findDifference(onGpu.results, onCpu, wanted)
    if (!difference) {
      this.#evidence.add(feeds, null)
      this.#keepAgreed(onCpu)
      return onGpu
    }
    dispose(onGpu.results)
    const again = await this.#runOnCpu(feeds, wanted)
    const isRandom = again && findDifference(again.results, onCpu, wanted)
    if (again) dispose(again.results)
    if (isRandom) await this.#conclude({ agrees: true, why: RANDOM })
    else this.#evidence.add(feeds, difference)
    return { results: onCpu.results, device: 'wasm' as const }
  }

  /** Resolves with the outputs of the CPU, with what they were chosen from; `null` if it fails. */
  async #runOnCpu(feeds: Feeds, wanted: readonly string[]): Promise<ReferenceRun | null> {
    this.#reference ??= this.#options.openReference(wanted)
    try {
      const { session, sources } = await this.#reference
      const chosenFrom = [...sources.values()].flatMap(({ tensors }) => tensors)
      return {
        results: await session.run(feeds, [...new Set([...wanted, ...chosenFrom])]),
        sources,
      }
    } catch (thrown) {
      const error = InoriginError.from(thrown)
      // The runtime cannot be used after these, on either device.
      if (error.code === 'device_lost' || error.code === 'runtime_crashed') throw error
      return null
    }
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
  results: Results
  sources: ReadonlyMap<string, ChoiceSource>
}

/** The output that differs most from that of the CPU. */
interface Difference {
  isGross: boolean
  why: string
}

/** Returns how the outputs differ, by the one that agrees least; `null` if they agree. */
function findDifference(
  computed: Results,
  { results, sources }: ReferenceRun,
  wanted: readonly string[],
): Difference | null {
  let worst: Difference | null = null
  for (const name of wanted) {
    const [our, their] = [computed[name], results[name]]
    if (!our || !their) throw new InoriginError('internal', `The model returned no ${name}.`)
    const [ours, theirs] = [fromTensor(our), fromTensor(their)]
    const source = sources.get(name)
    const tensors = source?.tensors.flatMap((tensor) => results[tensor] ?? []).map(fromTensor)
    const chosenFrom = source && tensors?.length ? { ...source, tensors } : undefined
    const agreement = compareTensors(ours, theirs, chosenFrom)
    const isGross = agreement === 'gross'
    if (agreement !== 'same' && (!worst || (isGross && !worst.isGross)))
      worst = { isGross, why: `${name}${describeDifference(ours.data, theirs.data)} on the CPU` }
  }
  return worst
}

/** Describes the elements that are farthest from each other, for a reader. */
function describeDifference(ours: ElementData, theirs: ElementData): string {
  if (ours.length !== theirs.length)
    return ` has ${ours.length} elements on the GPU and ${theirs.length}`
  let at = 0
  let most = 0
  for (let index = 0; index < theirs.length; index += 1) {
    const far = Math.abs(Number(ours[index]) - Number(theirs[index]))
    const distance = Number.isNaN(far) ? Infinity : far
    if (distance > most) [at, most] = [index, distance]
  }
  const show = (value: unknown) =>
    typeof value === 'number' ? String(Number(value.toPrecision(4))) : String(value)
  return `[${at}] is ${show(ours[at])} on the GPU and ${show(theirs[at])}`
}

function dispose(results: Results): void {
  for (const tensor of Object.values(results)) tensor.dispose()
}

/** Number of inputs, out of three, that decide: two that agree, or two that differ. */
const DECISIVE_INPUTS = 2

/** Runs after which one input decides for a caller that always sends it. Silence never does. */
const MAX_RUNS = 64

type Input = ReadonlyMap<string, { data: ArrayLike<unknown>; shape: string }>

/** Counts the inputs for which a GPU agreed with the CPU, until that is enough for a verdict. */
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

  /** Adds the comparison of an input; `null` if both devices agreed. */
  add(feeds: Feeds, difference: Difference | null): void {
    const isRepeated = this.#last !== undefined && isSameInput(this.#last.input, feeds)
    this.#last = { input: copyOf(feeds), agrees: !difference }
    this.#runs += 1
    if (!difference) {
      const names = Object.keys(feeds)
      for (const name of names) if (!isUniform(feeds[name])) this.#varied.add(name)
      if (!isRepeated && names.every((name) => this.#varied.has(name))) this.#agreeing += 1
      return
    }
    this.#difference = difference.why
    if (difference.isGross) this.#differing = DECISIVE_INPUTS
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

/** Returns `true` for an input of many numbers that are all the same, such as silence. */
function isUniform(tensor: Tensor | undefined): boolean {
  const hasSignal = tensor?.type.startsWith('float') || tensor?.type === 'uint8'
  if (!tensor || !hasSignal || tensor.size < 2) return false
  const elements = tensor.data as Float32Array
  return elements.every((element) => element === elements[0])
}

const copyOf = (feeds: Feeds): Input =>
  new Map(
    Object.entries(feeds).map(([name, { data, dims }]) => [
      name,
      { data: (data as Float32Array).slice(), shape: dims.join() },
    ]),
  )

const isSameInput = (before: Input, feeds: Feeds) =>
  Object.entries(feeds).every(([name, { data, dims }]) => {
    const old = before.get(name)
    const elements = data as Float32Array
    return (
      old?.shape === dims.join() && elements.every((element, index) => element === old.data[index])
    )
  })

/** `gross` is so far beyond the tolerance that rounding cannot be the cause. */
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

/** Compares an output with the reference. Near-ties in `source`, if any, count as the same. */
export function compareTensors(
  computed: RawTensor,
  reference: RawTensor,
  source?: ChosenFrom,
): Agreement {
  const isSameShape =
    computed.data.length === reference.data.length && fitsShape(computed.shape, reference.shape)
  const isFloat = TOLERANCES[reference.type] !== undefined
  // The number of things that a model finds may depend on one near-tie.
  if (!isSameShape) return isFloat ? 'gross' : 'different'
  const { type } = isFloat ? reference : (source?.tensors[0] ?? reference)
  const tolerance = TOLERANCES[type] ?? 0
  const difference = isFloat
    ? findLargestDifference(computed, reference, tolerance)
    : findWorstChoice(computed, reference, source)
  if (difference <= tolerance) return 'same'
  return difference <= GROSS_DIFFERENCE ? 'different' : 'gross'
}

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

/** Returns how much worse than those of the reference integers, booleans or texts are. */
function findWorstChoice(computed: RawTensor, reference: RawTensor, source?: ChosenFrom): number {
  const marginAt = source && createMargins(source, computed, reference)
  let worst = 0
  for (let index = 0; index < reference.data.length; index += 1)
    if (computed.data[index] !== reference.data[index])
      worst = Math.max(worst, marginAt?.(index) ?? GROSS_DIFFERENCE)
  return worst
}

const toNumbers = (tensor: RawTensor) => toReadableData(tensor) as Float32Array | Float64Array
