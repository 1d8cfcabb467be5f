/** Wraps the logits tensor that a run returned, for the sampler. */
import type { Tensor } from 'onnxruntime-web'
import { InoriginError } from '../../../error.ts'
import { createGpuLogits } from '../logits/gpu.ts'
import { createCpuLogits } from '../../sampling/logits.ts'
import { rowOf } from '../logits/row.ts'
import type { Logits } from '../../decoder.ts'

export interface LogitsWrapper {
  /**
   * Resolves with logits whose rows are the tensor's rows in `order`. It takes ownership of the
   * tensor. Rejects with `internal` if the model returned none.
   */
  wrap(tensor: Tensor | null, order: readonly number[]): Promise<Logits>
  /** Frees the tensors of logits that were not released. */
  close(): void
}

/** Creates the wrapper. If a tensor is in GPU memory, candidates are selected there. */
export function createLogitsWrapper(gpu: GPUDevice | undefined): LogitsWrapper {
  const unreleased = new Set<Tensor>()

  const wrap: LogitsWrapper['wrap'] = async (tensor, order) => {
    if (!tensor) throw new InoriginError('internal', 'The model returned no logits.')
    if (!gpu || tensor.location !== 'gpu-buffer') {
      return createCpuLogits(order.map((row) => rowOf(tensor, row)))
    }
    unreleased.add(tensor)
    const logits = await createGpuLogits(gpu)
    return logits({
      buffer: tensor.gpuBuffer,
      type: tensor.type === 'float16' ? 'float16' : 'float32',
      order,
      vocabulary: tensor.dims.at(-1) ?? 0,
      release() {
        // The runtime keeps its output tensors until they are disposed of.
        unreleased.delete(tensor)
        tensor.dispose()
      },
    })
  }

  const close = (): void => {
    for (const tensor of unreleased) tensor.dispose()
    unreleased.clear()
  }
  return { wrap, close }
}
