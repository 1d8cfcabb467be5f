/** Opens a predictor's files on the CPU, to compare what the GPU computes from them. */
import { readOperations } from '../engine/onnx/decoder/operations.ts'
import type { Session } from '../engine/onnx/runtime.ts'
import { type ChoiceSource, findChoiceSource, withOutputs } from './chosen-from.ts'
import type { ReferenceSession } from './gpu-check.ts'

/**
 * Resolves with a session on the CPU, with further outputs: what the integer and boolean ones of
 * `wanted` were chosen from. `open` opens one with the graph `model` or
 * an adapted copy of it.
 */
export async function openReference(
  gpuSession: Session,
  wanted: readonly string[],
  model: Blob,
  open: (adapted: Blob) => Promise<Session>,
): Promise<ReferenceSession> {
  const chosen = gpuSession.outputs.filter(
    (output) => output.isTensor && wanted.includes(output.name) && !output.type.startsWith('float'),
  )
  const operations = chosen.length > 0 ? await readOperations(model) : []
  const sources = new Map<string, ChoiceSource>()
  for (const { name } of chosen) {
    const source = findChoiceSource(operations, name)
    if (source) sources.set(name, source)
  }
  const listed = new Set(gpuSession.outputs.map(({ name }) => name))
  const added = new Set([...sources.values()].flatMap(({ tensors }) => tensors))
  const extra = [...added].filter((name) => !listed.has(name))
  if (extra.length === 0) return { session: await open(model), sources }
  try {
    return { session: await open(withOutputs(model, extra)), sources }
  } catch {
    // A tensor inside a branch cannot be an output. Without them, all differences count.
    return { session: await open(model), sources: new Map() }
  }
}
