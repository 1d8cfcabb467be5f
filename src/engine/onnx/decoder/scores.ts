/** From the tensor of a run to the scores that are asked of it. */
import type { Tensor } from 'onnxruntime-web'
import { createCpuLogits, rowOf } from '../sampling/logits.ts'
import type { Logits } from './contract.ts'

export interface Scores {
  /** `order` has the tensor's row of each row that is wanted. Takes the tensor over. */
  of(tensor: Tensor, order: readonly number[]): Promise<Logits>
  /** Frees what nobody released. */
  close(): void
}

export function createScores(): Scores {
  const held = new Set<Tensor>()

  const of: Scores['of'] = async (tensor, order) => {
    await tensor.getData(true)
    return createCpuLogits(order.map((row) => rowOf(tensor, row)))
  }
  const close = (): void => {
    for (const tensor of held) tensor.dispose()
    held.clear()
  }
  return { of, close }
}
