/** From the tensor of a run to the scores that are asked of it. */
import type { Tensor } from 'onnxruntime-web'
import { createGpuLogits } from '../logits/gpu.ts'
import { createCpuLogits } from '../../sampling/logits.ts'
import { rowOf } from '../logits/row.ts'
import type { Logits } from '../../decoder.ts'

export interface Scores {
  /** `order` has the tensor's row of each row that is wanted. Takes the tensor over. */
  of(tensor: Tensor, order: readonly number[]): Promise<Logits>
  /** Frees what nobody released. */
  close(): void
}

/** Scores that were left on the GPU are chosen from there. */
export function createScores(gpu: GPUDevice | undefined): Scores {
  const held = new Set<Tensor>()

  const of: Scores['of'] = async (tensor, order) => {
    if (!gpu || tensor.location !== 'gpu-buffer') {
      return createCpuLogits(order.map((row) => rowOf(tensor, row)))
    }
    held.add(tensor)
    const logits = await createGpuLogits(gpu)
    return logits({
      buffer: tensor.gpuBuffer,
      type: tensor.type === 'float16' ? 'float16' : 'float32',
      order,
      vocabulary: tensor.dims.at(-1) ?? 0,
      release() {
        // The runtime keeps what it gave until it is told.
        held.delete(tensor)
        tensor.dispose()
      },
    })
  }

  const close = (): void => {
    for (const tensor of held) tensor.dispose()
    held.clear()
  }
  return { of, close }
}
