/** What a model is that cannot be run with its inputs, as opposed to a runtime that fails. */

/** The runtime's own check of inputs, and its code for arguments that a kernel has no use for. */
const REFUSED = /invalid dimensions|invalid.argument|ERROR_CODE: 2\b/i
/** Lengths that do not go together have no code of their own. */
const UNCODED = /ERROR_CODE: 1\b/i
const LENGTHS = /broadcast|reshape|dimension|shape/i
/** Where its sources for GPUs lie. */
const OF_GPU = /providers\/webgpu\//i

/**
 * What the runtime said of the inputs, without where in its sources; `null` where its message is of
 * something else.
 */
export function mismatchOf(message: string): string | null {
  const said = withoutPlace(message)
  const isOfLengths = UNCODED.test(message) && LENGTHS.test(said)
  return REFUSED.test(message) || isOfLengths ? said : null
}

/** What it said of a GPU that lacks what the model needs, such as buffers at once; `null` as above. */
export function gpuLackOf(message: string): string | null {
  return OF_GPU.test(message) && mismatchOf(message) === null ? withoutPlace(message) : null
}

/** Functions of its sources name types that sound like what is wrong. */
function withoutPlace(message: string): string {
  return message
    .replace(/^.*?ERROR_MESSAGE:\s*/s, '')
    .replace(/^.*?Status Message:\s*/s, '')
    .replace(/^.*?was false\.\s*/s, '')
    .trim()
}
