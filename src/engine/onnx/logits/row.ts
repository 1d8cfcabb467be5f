/** Reads logits from a tensor in CPU memory. */
import type { Tensor } from 'onnxruntime-web'
import { halfToFloat32 } from '../../../values/half.ts'

/**
 * Returns row `index` of a tensor in CPU memory, whose last dimension is the vocabulary, as 32-bit
 * floats.
 */
export function rowOf(tensor: Tensor, index: number): Float32Array {
  const size = tensor.dims.at(-1) ?? 0
  const { data } = tensor
  if (data instanceof Float32Array) return data.subarray(index * size, (index + 1) * size)
  if (data instanceof Uint16Array)
    return halfToFloat32(data.subarray(index * size, (index + 1) * size))
  // The runtime returns a Float16Array in browsers that have it.
  const halves = data as unknown as Float32Array
  return new Float32Array(halves.subarray(index * size, (index + 1) * size))
}
