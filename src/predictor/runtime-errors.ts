/** Tells inputs that a model rejects from a runtime that fails, by the runtime's message. */

/** Messages of the runtime's check of inputs, and its code for arguments that a kernel rejects. */
const REJECTED_INPUT = /invalid dimensions|invalid.argument|ERROR_CODE: 2\b/i
/** Error code of the runtime that includes, among others, lengths that do not match. */
const GENERIC_FAILURE = /ERROR_CODE: 1\b/i
const LENGTH_WORDS = /broadcast|reshape|dimension|shape/i
/** Path of the runtime's sources for GPUs. */
const GPU_SOURCE = /providers\/webgpu\//i

/**
 * Returns the runtime's message about rejected inputs, without the location in its sources. Returns
 * `null` for any other message.
 */
export function findInputMismatch(message: string): string | null {
  const reason = withoutSourceLocation(message)
  const isAboutLengths = GENERIC_FAILURE.test(message) && LENGTH_WORDS.test(reason)
  return REJECTED_INPUT.test(message) || isAboutLengths ? reason : null
}

/** Returns the message about a GPU that lacks what the model needs, such as buffers, or `null`. */
export function findGpuShortage(message: string): string | null {
  return GPU_SOURCE.test(message) && findInputMismatch(message) === null
    ? withoutSourceLocation(message)
    : null
}

/** Removes source locations, because function names there could match the patterns above. */
function withoutSourceLocation(message: string): string {
  return message
    .replace(/^.*?ERROR_MESSAGE:\s*/s, '')
    .replace(/^.*?Status Message:\s*/s, '')
    .replace(/^.*?was false\.\s*/s, '')
    .trim()
}
