/** Compares an answer of `/v1/chat/completions` with that of the exporter's own reference. */

/** A token as its bytes, and its logprob. */
export type Scored = readonly [bytes: readonly number[], logprob: number]

/** One answer of `reference.json`: at each token, the best ones in descending order. */
export interface ReferenceAnswer {
  promptTokens: number
  steps: readonly (readonly Scored[])[]
}

/** `reference.json`, which `tools/exporters/make.py` writes. */
export interface Reference {
  exporter: string
  transformers: string
  architecture: string
  requests: readonly { name: string; messages: readonly { role: string; content: string }[] }[]
  precisions: Readonly<Record<string, { from: string; answers: readonly ReferenceAnswer[] }>>
}

/** The part of a chat completion that is compared. */
export interface Completion {
  usage: { prompt_tokens: number; completion_tokens: number }
  choices: readonly { finish_reason: string; logprobs: { content: readonly TokenLogprob[] } }[]
}

interface TokenLogprob {
  token: string
  /** `null` for a special token, of which the reference has the bytes of its name. */
  bytes: readonly number[] | null
  logprob: number
}

export interface Comparison {
  /** Tokens of the reference that were compared. */
  tokens: number
  /** How many of them the answer has, from its start. */
  equal: number
  /**
   * `true` if the answer left the reference at a token that the reference finds as likely as its own,
   * within the tolerance. What follows cannot be compared, and is not counted.
   */
  isTie: boolean
  /** Greatest difference of the logprobs of equal tokens. */
  difference: number
  /** What else is wrong; `null` if nothing is. */
  fault: string | null
}

/** Returns the comparison. `tolerance` is the distance of two logprobs that counts as equal. */
export function compareAnswer(
  { promptTokens, steps }: ReferenceAnswer,
  { usage, choices }: Completion,
  tolerance: number,
): Comparison {
  const answer = choices[0]?.logprobs.content ?? []
  const isEnded = choices[0]?.finish_reason === 'stop'
  let fault: string | null = null
  if (usage.prompt_tokens !== promptTokens)
    fault = `${usage.prompt_tokens} tokens of prompt, not ${promptTokens}`
  // The token that ends an answer counts, and has no entry.
  else if (answer.length + Number(isEnded) !== usage.completion_tokens)
    fault = `${answer.length} logprobs for ${usage.completion_tokens} tokens`
  let difference = 0
  /** Returns the comparison of an answer that left the reference at a token, or has it whole. */
  const leave = (equal: number, isTie = false, alsoWrong: string | null = null): Comparison => {
    const tokens = isTie ? equal : steps.length
    return { tokens, equal, isTie, difference, fault: fault ?? alsoWrong }
  }
  for (const [at, best] of steps.entries()) {
    const own = best[0]
    const token = answer[at]
    if (own === undefined) break
    if (token === undefined) {
      const end = isEnded ? best.find(([bytes]) => isSpecial(bytes)) : undefined
      if (end === own) return leave(at + 1)
      const isTie = end !== undefined && own[1] - end[1] <= tolerance
      return leave(at, isTie, isTie ? null : 'it ends early')
    }
    const bytes = token.bytes ?? [...new TextEncoder().encode(token.token)]
    if (!isSame(bytes, own[0])) {
      const other = best.find(([one]) => isSame(bytes, one))
      return leave(at, other !== undefined && own[1] - other[1] <= tolerance)
    }
    difference = Math.max(difference, Math.abs(token.logprob - own[1]))
  }
  return leave(steps.length)
}

const isSame = (left: readonly number[], right: readonly number[]): boolean =>
  left.length === right.length && left.every((byte, at) => byte === right[at])

/** Returns `true` for the name of a special token, such as `<|im_end|>`. */
const isSpecial = (bytes: readonly number[]): boolean =>
  /^<[^<>]+>$/.test(new TextDecoder().decode(Uint8Array.from(bytes)))
