/** Scores out of a tensor that is in plain memory. */
import type { Tensor } from 'onnxruntime-web'
import { widen } from '../../../values/half.ts'

/**
 * Row `index` of a tensor in plain memory whose last dimension is the vocabulary, as 32-bit floats.
 */
export function rowOf(tensor: Tensor, index: number): Float32Array {
  const size = tensor.dims.at(-1) ?? 0
  const { data } = tensor
  if (data instanceof Float32Array) return data.subarray(index * size, (index + 1) * size)
  if (data instanceof Uint16Array) return widen(data.subarray(index * size, (index + 1) * size))
  // Browsers that have Float16Array get one.
  const halves = data as unknown as Float32Array
  return new Float32Array(halves.subarray(index * size, (index + 1) * size))
}
