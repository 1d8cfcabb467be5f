/** Draft of a predictor with what its task adds. */
import type { Binding, PredictorEntry } from '../../catalog/schema.ts'
import type { Draft } from '../signature.ts'

type Output = PredictorEntry['signature']['outputs'][number]

/** Draft with what only some tasks have. */
export interface TaskDraft
  extends Draft, Pick<PredictorEntry, 'embeddings' | 'rerank' | 'speech'> {}

/** Returns a draft with this only output, which is made of a tensor of the graph. */
export function withOutput(draft: TaskDraft, output: Output, binding: Binding): TaskDraft {
  const outputs = new Set(draft.signature.outputs.map(({ name }) => name))
  const kept = Object.entries(draft.bindings).filter(([name]) => !outputs.has(name))
  return {
    ...draft,
    signature: { ...draft.signature, outputs: [output] },
    bindings: { ...Object.fromEntries(kept), [output.name]: binding },
  }
}
