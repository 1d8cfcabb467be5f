/** What a model is that cannot be run with its inputs, as opposed to a runtime that fails. */

/** The runtime's own check of inputs, and its code for arguments that a kernel has no use for. */
const REFUSED = /invalid dimensions|invalid.argument|ERROR_CODE: 2\b/i
/** Lengths that do not go together have no code of their own. */
const LENGTHS = /ERROR_CODE: 1\b.*(broadcast|reshape|dimension|shape)/is

/**
 * What the runtime said of the inputs, without where in its sources; `null` where its message is of
 * something else.
 */
export function mismatchOf(message: string): string | null {
  if (!REFUSED.test(message) && !LENGTHS.test(message)) return null
  return message
    .replace(/^.*?ERROR_MESSAGE:\s*/s, '')
    .replace(/^.*?(?:was false\.|Status Message:)\s*/s, '')
    .trim()
}
