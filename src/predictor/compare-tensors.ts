/** Compares tensors that two devices computed from the same inputs. */
import { type ElementType, toReadableData } from '../values/elements.ts'
import { createMargins, GROSS_DIFFERENCE, MIN_SCALE, type ChosenFrom } from './chosen-from.ts'
import type { RawTensor } from './tensor.ts'

/**
 * `same`: within the tolerance. `different`: beyond it. `gross`: so far beyond it that rounding
 * cannot be the cause.
 */
export type Agreement = 'same' | 'different' | 'gross'

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
export function compareTensors(
  computed: RawTensor,
  reference: RawTensor,
  source?: ChosenFrom,
): Agreement {
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

const rate = (difference: number, tolerance: number): Agreement =>
  difference <= tolerance ? 'same' : difference <= GROSS_DIFFERENCE ? 'different' : 'gross'

/** Returns the largest relative difference of floats: of all of them, or in a slice. */
function findLargestDifference(
  computed: RawTensor,
  reference: RawTensor,
  tolerance: number,
): number {
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
function compareChoices(
  computed: RawTensor,
  reference: RawTensor,
  source: ChosenFrom | undefined,
): Agreement {
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

const toleranceOf = (source: ChosenFrom | undefined): number =>
  (source && TOLERANCES[source.tensors[0].type]) ?? 0

const toNumbers = (tensor: RawTensor): ArrayLike<number> =>
  toReadableData(tensor) as Float32Array | Float64Array
