/** Tells under which condition of the catalog an upstream server may answer after an error. */
import type { Condition } from '../../catalog/upstream-schema.ts'
import { InoriginError } from '../../error.ts'

/** Codes of errors that say nothing about this device. */
const PASSING_CODES: ReadonlySet<string | undefined> = new Set(['unloaded', 'replaced'])

/** Returns the condition that an error of the local model stands for. */
export function toCondition(error: unknown): Condition | undefined {
  if (!(error instanceof InoriginError)) return undefined
  if (error.code === 'queue_full') return 'busy'
  if (error.code === 'context_length_exceeded') return 'too-long'
  return error.kind === 'unavailable' && !PASSING_CODES.has(error.code) ? 'unavailable' : undefined
}
