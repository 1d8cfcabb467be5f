/** Tells inputs that a model rejects from a runtime that fails, by the runtime's message. */

/** Messages of the runtime's check of inputs, and its code for arguments that a kernel rejects. */
const REFUSED = /invalid dimensions|invalid.argument|ERROR_CODE: 2\b/i
/** Error code of the runtime that includes, among others, lengths that do not match. */
const UNCODED = /ERROR_CODE: 1\b/i
const LENGTHS = /broadcast|reshape|dimension|shape/i
/** Path of the runtime's sources for GPUs. */
const OF_GPU = /providers\/webgpu\//i

/**
 * Returns the runtime's message about rejected inputs, without the location in its sources. Returns
 * `null` for any other message.
 */
export function mismatchOf(message: string): string | null {
  const said = withoutPlace(message)
  const isOfLengths = UNCODED.test(message) && LENGTHS.test(said)
  return REFUSED.test(message) || isOfLengths ? said : null
}

/** Returns the message about a GPU that lacks what the model needs, such as buffers, or `null`. */
export function gpuLackOf(message: string): string | null {
  return OF_GPU.test(message) && mismatchOf(message) === null ? withoutPlace(message) : null
}

/** Removes source locations, because function names there could match the patterns above. */
function withoutPlace(message: string): string {
  return message
    .replace(/^.*?ERROR_MESSAGE:\s*/s, '')
    .replace(/^.*?Status Message:\s*/s, '')
    .replace(/^.*?was false\.\s*/s, '')
    .trim()
}
