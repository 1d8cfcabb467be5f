/**
 * Scheduling policy: decides what the decoder runs next. It is a pure function of the state: it
 * reads no clock, no decoder and no token.
 */

/** A sequence that waits for logits. `S` is the type that identifies a slot. */
export interface WaitingSequence<S> {
  slot: S
  /** `false` before the prefill starts. */
  hasSequence: boolean
  /** Number of tokens that are computed or, before the prefill starts, in the prefix cache. */
  computedTokens: number
  /** Number of tokens to compute. */
  pendingTokens: number
  /** Number of prompt tokens that another sequence may share, for each slot with any. */
  sharedTokens: ReadonlyMap<S, number>
  /** Lengths in tokens at which the sequence needs a checkpoint, ascending. */
  checkpointLengths: readonly number[]
  /** `true` if the answer needs no logits yet and waits for its start only. */
  startsOnly: boolean
  /** `true` if the pending token equals the next draft token, whose logits are stored. */
  matchesDraft: boolean
  /** `true` if the tokens after the pending one are known and only their logits are of interest. */
  hasCertainDraft: boolean
  /** `true` if the sequence had a decode step after the last prefill chunk. */
  decodedSinceChunk: boolean
}

/** Everything that the policy knows. */
export interface PolicyState<S> {
  /** Sequences that wait for logits, at least one. The one that waits longest is first. */
  waiting: readonly WaitingSequence<S>[]
  /** Number of all sequences, including those that do not wait. */
  sequences: number
  maxBatchSize: number
  /** Length of the next chunk in tokens if the sequence is alone, and if it is not. */
  chunkTokens: { alone: number; shared: number }
  /** Time in milliseconds of the last prefill chunk. */
  lastChunkMs: number
  /** Time in milliseconds of the decode steps after the last prefill chunk. */
  decodeMs: number
  /** `true` if a sequence can be truncated to every length; `null` before the first chunk. */
  canTruncate: boolean | null
  /** `false` if the decoder has no use for checkpoints. */
  needsCheckpoints: boolean
}

/** Next run of the decoder. */
export type Decision<S> =
  /** Takes a prefix from the prefix cache and computes nothing. */
  | { type: 'start'; slot: S }
  /** Computes the next `tokens` tokens of a prompt. */
  | { type: 'prefill'; slot: S; tokens: number }
  /** Computes one token for each sequence. `drafts` allows draft tokens after a single one. */
  | { type: 'decode'; slots: S[]; drafts: boolean }
  /** Accepts a draft token and reads the stored logits after it, without a forward pass. */
  | { type: 'verify'; slot: S }

/** Longest prefill chunk in milliseconds that calls for no additional decode steps; a guess. */
const FAST_CHUNK_MS = 50

/** Longest time in milliseconds of decode steps after a chunk, in case the chunk stalled once. */
const MAX_DECODE_BUDGET_MS = 2_000

/**
 * Decides what runs next. After each prefill chunk, every ready sequence gets one decode step, and
 * after a slow chunk more of them. Prompts get their chunks in turn.
 */
export function decide<S>(state: PolicyState<S>): Decision<S> {
  const ready = state.waiting.filter(isReady)
  const prompt = state.waiting.find((each) => !isReady(each) && !waitsForPrefill(each, state))
  if (!prompt) return decideDecode(ready, state)
  const undecoded = ready.filter((each) => !each.decodedSinceChunk)
  if (undecoded.length > 0) return decideDecode(undecoded, state)
  if (ready.length > 0 && state.decodeMs < decodeBudgetMs(state)) return decideDecode(ready, state)
  if (prompt.startsOnly) return { type: 'start', slot: prompt.slot }
  return { type: 'prefill', slot: prompt.slot, tokens: chunkLength(prompt, state) }
}

/** Returns `true` if one token is left to compute, so that a decode step computes it. */
const isReady = <S>({ hasSequence, pendingTokens }: WaitingSequence<S>): boolean =>
  hasSequence && pendingTokens === 1

/** Returns the time in milliseconds of decode steps that a slow chunk calls for. */
const decodeBudgetMs = <S>({ lastChunkMs }: PolicyState<S>): number =>
  lastChunkMs < FAST_CHUNK_MS ? 0 : Math.min(lastChunkMs, MAX_DECODE_BUDGET_MS)

/**
 * Decodes the ready sequences that wait longest. The first one is verified alone if its draft
 * matches; others with a matching draft wait, because a decode step would compute the same token. A
 * sequence whose next tokens are certain runs before the others: they wait for one run, once.
 */
function decideDecode<S>(
  ready: readonly WaitingSequence<S>[],
  { waiting, maxBatchSize, canTruncate }: PolicyState<S>,
): Decision<S> {
  const [first] = ready
  if (first?.matchesDraft) return { type: 'verify', slot: first.slot }
  const certain = ready.find((each) => each.hasCertainDraft && !each.matchesDraft)
  if (certain && canTruncate) return { type: 'decode', slots: [certain.slot], drafts: true }
  const slots = ready.filter((each) => !each.matchesDraft).map(({ slot }) => slot)
  // Drafts would delay other answers, and wrong ones have to be removed.
  const drafts = canTruncate === true && waiting.length === 1
  return { type: 'decode', slots: slots.slice(0, maxBatchSize), drafts }
}

/** Returns `true` if a running prefill will soon save this prompt a chunk or more. */
function waitsForPrefill<S>(prompt: WaitingSequence<S>, state: PolicyState<S>): boolean {
  if (prompt.hasSequence) return false
  return state.waiting.some((other) => {
    if (!other.hasSequence || isReady(other)) return false
    const common = prompt.sharedTokens.get(other.slot) ?? 0
    const reusable = state.canTruncate
      ? common
      : Math.max(0, ...other.checkpointLengths.filter((each) => each <= common))
    return (
      reusable > other.computedTokens &&
      reusable - prompt.computedTokens >= state.chunkTokens.shared
    )
  })
}

/** Returns the tokens of the next chunk. It ends at the next length that needs a checkpoint. */
function chunkLength<S>(prompt: WaitingSequence<S>, state: PolicyState<S>): number {
  const { computedTokens, pendingTokens, checkpointLengths } = prompt
  const { chunkTokens, sequences, canTruncate, needsCheckpoints } = state
  const checkpoint =
    !canTruncate && needsCheckpoints
      ? checkpointLengths.find((each) => each > computedTokens)
      : undefined
  return Math.min(
    pendingTokens,
    sequences === 1 ? chunkTokens.alone : chunkTokens.shared,
    (checkpoint ?? Infinity) - computedTokens,
  )
}
