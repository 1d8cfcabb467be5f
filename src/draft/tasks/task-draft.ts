/** Draft of a predictor with what its task adds. */
import type { Binding, PredictorEntry } from '../../catalog/schema.ts'
import type { Item } from '../plan.ts'
import type { Draft } from '../signature.ts'

type Output = PredictorEntry['signature']['outputs'][number]

/** Draft with what only some tasks have. */
export interface TaskDraft extends Draft, Pick<PredictorEntry, 'embeddings' | 'rerank'> {
  /** Files that the bindings name and the folder does not have as such. */
  items: Item[]
}

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

/** Returns a file that is made for the draft. Its path is that of no file of the folder. */
export function makeItem(name: string, content: unknown): Item {
  const text = `${JSON.stringify(content, null, 2)}\n`
  const { length: bytes } = new TextEncoder().encode(text)
  return { type: 'config', name, path: name, bytes, text }
}
