/** Limits the work that the schemas of one request may cause. */
import { rejectSchema } from './node.ts'

/**
 * Maximum number of steps for all schemas, patterns and grammars of one constraint, from parsing to
 * writing. They took 0.2 to 1.3 s of CPU time in Node 20 on a busy machine with 2 slow cores.
 */
export const MAX_SCHEMA_STEPS = 3_000_000

export interface StepBudget {
  /**
   * Counts work. Throws `unsupported_schema` if the limit is exceeded. The error names the last
   * `path` that was passed.
   */
  spend(count: number, path?: string): void
}

export function createStepBudget(limit = MAX_SCHEMA_STEPS): StepBudget {
  let left = limit
  let lastPath = ''
  return {
    spend: (count, path = lastPath) => {
      lastPath = path
      left -= count
      if (left >= 0) return
      rejectSchema(
        lastPath,
        'takes too long to compile. Use fewer alternatives, shorter lists and simpler patterns.',
      )
    },
  }
}
