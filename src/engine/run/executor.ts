/**
 * Executor: runs what the scheduling policy decided. Its verbs are `prefill`, `decode` and
 * `verify`. Each one computes the logits of sequences and lets their answers read them.
 */
import type { Candidates, Decoder, Logits } from '../decoder.ts'
import type { PrefixCache, ReuseLimits, SequenceEntry } from './prefix-cache.ts'
import { type ActiveSlot, type Draft, isActive, type RequestOutcome, type Slot } from './slot.ts'

/**
 * Largest number of prompt tokens that are computed one at a time after a cached prefix, if a
 * decoder computes only whole prompts at once. It is a guess: from some number of tokens on, the
 * whole prompt takes less time.
 */
const MAX_STEPS_AFTER_PREFIX = 16

/** Runs sequences on a decoder. Each call must settle before the next one. */
export class Executor {
  readonly #reopen: () => Promise<Decoder>
  readonly #prefixCache: PrefixCache
  readonly #chunkSizer: ChunkSizer
  readonly #draftSizer = new DraftSizer()
  #decoder: Decoder
  #canTruncate: boolean | null = null
  /** The last prefill chunk on the device, and the one before. */
  #lastChunk = Promise.resolve()
  #earlierChunk = this.#lastChunk

  /** @param reopen Frees the failed decoder and resolves to a new one. */
  constructor(decoder: Decoder, reopen: () => Promise<Decoder>, prefixCache: PrefixCache) {
    this.#decoder = decoder
    this.#reopen = reopen
    this.#prefixCache = prefixCache
    this.#chunkSizer = new ChunkSizer(decoder.maxChunkTokens)
  }

  get decoder(): Decoder {
    return this.#decoder
  }

  /** `true` if a sequence can be truncated to every length; `null` before the first chunk. */
  get canTruncate(): boolean | null {
    return this.#canTruncate
  }

  /** Returns the length in tokens of the next chunk of a sequence that is `alone`, or is not. */
  chunkTokens(alone: boolean): number {
    return this.#chunkSizer.chunkTokens(alone)
  }

  /** Returns what a sequence of these tokens may reuse of others. */
  reuseLimits({ length }: readonly number[]): ReuseLimits {
    const { maxShortLength = Infinity, chunksOnlyAtStart } = this.#decoder
    const maxRest = chunksOnlyAtStart ? MAX_STEPS_AFTER_PREFIX : Infinity
    return { isLong: length > maxShortLength, maxRest }
  }

  /** Returns `true` if the tokens of the slot need a long sequence, and it has another one. */
  outgrows(slot: Slot): boolean {
    return isActive(slot) && lengthOf(slot) > this.#maxLength(slot.entry)
  }

  /** Gives the slot a sequence: the longest cached prefix of its prompt, or an empty one. */
  async start(slot: Slot, running: SequenceEntry[]): Promise<ActiveSlot> {
    const { partition, onStart } = slot.request
    const limits = this.reuseLimits(slot.tokens)
    const hit = await this.#prefixCache.acquire(slot.tokens, partition, running, limits)
    const sequence = hit?.sequence ?? this.#decoder.open(limits.isLong)
    const entry = hit ?? { sequence, tokens: [], partition }
    const active = Object.assign(slot, { entry })
    slot.pending.splice(0, entry.tokens.length)
    if (!slot.started) onStart({ cachedTokens: entry.tokens.length })
    slot.started = true
    return active
  }

  /**
   * Computes the first `maxTokens` pending tokens, or as many as the sequence allows in a chunk.
   * Reads the logits if no tokens are left. If an image in them is not encoded, only encodes it, or
   * a part of it: other sequences wait for no more than that.
   */
  async prefill(slot: ActiveSlot, maxTokens: number): Promise<void> {
    // Forced tokens differ from the draft.
    await discardExcess(slot)
    const { sequence, tokens } = slot.entry
    const count = this.#chunkLength(slot, maxTokens)
    const chunk = slot.pending.slice(0, count)
    if (await this.#decoder.encodeNext?.(chunk)) return
    const isFirstChunk = tokens.length === 0
    const isLastChunk = count === slot.pending.length
    const start = performance.now()
    if (isLastChunk) await readNext([slot], () => sequence.forward(chunk), count)
    else {
      await sequence.extend(chunk)
      commitTokens(slot, count)
    }
    if (isFirstChunk && count > 1)
      this.#canTruncate ??= sequence.reusableLength(count - 1) === count - 1
    if (!this.#canTruncate && slot.checkpointLengths.includes(tokens.length)) sequence.checkpoint()
    if (isLastChunk) return
    this.#earlierChunk = this.#lastChunk
    this.#lastChunk = this.#chunkSizer.record(count, start, this.#decoder.synchronize())
  }

  /**
   * Computes the one pending token of each sequence, and reads the logits. If `drafts` is `true`,
   * draft tokens may follow the pending token of a single sequence, and so may a run ahead.
   */
  async decode(slots: readonly ActiveSlot[], drafts: boolean): Promise<void> {
    const isAlone = slots.length === 1
    for (const slot of slots) if (!isAlone || !isAhead(slot)) await discardExcess(slot)
    const [first] = slots
    if (first && drafts) await this.#decodeWithDraft(first)
    else await this.#step(slots)
  }

  /** Accepts the pending token, which equals the next draft token, and reads the logits after it. */
  async verify(slot: ActiveSlot): Promise<void> {
    const draft = slot.draft as Draft
    draft.tokens.shift()
    commitTokens(slot, 1)
    await readDraftRow(slot, draft)
  }

  /** Resolves when at most `count` prefill chunks are queued on the device. */
  awaitChunks(count: 0 | 1): Promise<void> {
    return count === 0 ? this.#lastChunk : this.#earlierChunk
  }

  /** Replaces the decoder after it failed. */
  async reopen(): Promise<void> {
    this.#decoder = await this.#reopen()
  }

  /** Returns how many pending tokens the next run has, of at most `maxTokens` if there is a choice. */
  #chunkLength({ entry, pending }: ActiveSlot, maxTokens: number): number {
    const { sequence, tokens } = entry
    if (this.#decoder.chunksOnlyAtStart) return tokens.length === 0 ? pending.length : 1
    return Math.min(maxTokens, sequence.maxChunkTokens ?? maxTokens)
  }

  /** Returns the largest length to which the sequence can grow. */
  #maxLength({ sequence }: SequenceEntry): number {
    return sequence.isLong ? Infinity : (this.#decoder.maxShortLength ?? Infinity)
  }

  /** Returns the largest number of draft tokens that can follow the pending tokens. */
  #maxDraftTokens(slot: ActiveSlot): number {
    if (this.#decoder.chunksOnlyAtStart) return 0
    const { drafter, maxDraftTokens } = slot.pendingRead?.reader ?? { maxDraftTokens: 0 }
    const { maxChunkTokens: maxChunk, maxRows = Infinity } = this.#decoder
    const room = this.#maxLength(slot.entry) - lengthOf(slot)
    const most = Math.max(0, Math.min(maxDraftTokens, maxRows - 1, room))
    if (!drafter?.isCertain) return this.#draftSizer.draftLength(drafter?.acceptanceRate ?? 0, most)
    const { maxChunkTokens = maxChunk } = slot.entry.sequence
    return Math.min(most, maxChunkTokens - 1)
  }

  /** Computes the one pending token of each answer in a batch, and reads the logits. */
  #step(slots: readonly ActiveSlot[]): Promise<void> {
    const [first] = slots
    if (first && slots.length === 1) return this.#stepAhead(first, false)
    const inputs = slots.map(({ entry, pending }) => ({
      sequence: entry.sequence,
      token: pending[0] as number,
    }))
    return readNext(slots, () => this.#decoder.step(inputs), 1)
  }

  /**
   * Computes the one pending token unless a run ahead did, and reads the logits. If `goesOn` is `true` and the answer
   * is greedy, the run after the next token begins before that token is read, so that the device does not wait.
   */
  #stepAhead(slot: ActiveSlot, goesOn: boolean): Promise<void> {
    const { entry, pending, ahead } = slot
    slot.ahead = null
    const step = { sequence: entry.sequence, token: pending[0] as number }
    const room = this.#maxLength(entry) - lengthOf(slot)
    const canGoOn = goesOn && room > 0 && (slot.pendingRead?.reader?.maxFurtherTokens ?? 0) > 0
    return readNext([slot], async () => ahead?.logits ?? this.#decoder.step([step]), 1, canGoOn)
  }

  /**
   * Computes the one pending token, with draft tokens after it if they pay off. Reads the logits of
   * the pending token. Keeps the logits of the drafts until they are verified.
   */
  async #decodeWithDraft(slot: ActiveSlot): Promise<void> {
    const { drafter = null } = slot.pendingRead?.reader ?? {}
    const { sequence } = slot.entry
    const isCertain = drafter?.isCertain ?? false
    const length = this.#maxDraftTokens(slot)
    const isDrafted = length > 0 && (drafter?.hasDraft ?? false)
    const start = performance.now()
    if (!isDrafted || slot.ahead) {
      const { since = start } = slot.ahead ?? {}
      // A drafter that knows how the text goes on gets the next run.
      await this.#stepAhead(slot, !isDrafted && !isCertain)
      return this.#draftSizer.record(0, performance.now() - since)
    }
    const drafted = drafter?.draft(length) ?? []
    const tokens = [...slot.pending, ...drafted]
    const requested = tokens.map((_, index) => slot.requestCandidates(drafted.slice(0, index)))
    const logits = await sequence.forward(tokens, tokens.length)
    commitTokens(slot, 1)
    slot.draft = { tokens: drafted, candidates: [], logits }
    const outcomes = await Promise.all(requested)
    slot.draft.candidates = await logits.top(outcomes.map((each) => each.request))
    if (!isCertain) this.#draftSizer.record(drafted.length, performance.now() - start)
    const [first] = outcomes
    if (first?.error === undefined) await readDraftRow(slot, slot.draft)
    else slot.rejectRead(first.error)
  }
}

/**
 * Computes the first `count` pending tokens of each slot by `compute`, and lets each answer read its
 * row of the resulting logits. With `goesOn`, the next run of the only slot may begin before.
 */
async function readNext(
  slots: readonly ActiveSlot[],
  compute: () => Promise<Logits>,
  count: number,
  goesOn = false,
): Promise<void> {
  const requested = slots.map((slot) => slot.requestCandidates())
  const logits = await compute()
  for (const slot of slots) commitTokens(slot, count)
  try {
    const outcomes = await Promise.all(requested)
    const reading = logits.top(outcomes.map((each) => each.request))
    const next = goesOn ? await beginNext(slots, outcomes, logits, reading) : null
    const candidates = await reading.catch((thrown: unknown) => {
      next?.release()
      throw thrown
    })
    const [only] = slots
    if (next && only) {
      const token = candidates[0]?.ids[0] as number
      only.ahead = { token, logits: next, since: performance.now() }
    }
    for (const [index, slot] of slots.entries()) {
      const { error } = outcomes[index] as RequestOutcome
      if (error !== undefined) slot.rejectRead(error)
      else await slot.read(logits, index, candidates[index] as Candidates)
    }
  } finally {
    logits.release()
  }
}

/** Begins the run after the best token of the logits, if that is the one that the only answer takes. */
async function beginNext(
  [slot]: readonly ActiveSlot[],
  [outcome]: readonly RequestOutcome[],
  logits: Logits,
  reading: Promise<unknown>,
): Promise<Logits | null> {
  if (!slot || outcome?.error !== undefined) return null
  const { count, temperature } = outcome?.request ?? { count: 0 }
  // Greedy answers take the best token.
  if (count !== 1 || temperature !== 0) return null
  // The caller awaits it later.
  reading.catch(() => undefined)
  return (await slot.entry.sequence.forwardBest?.(logits)) ?? null
}

/** Returns the number of tokens that are computed or pending. */
const lengthOf = ({ entry, pending }: ActiveSlot): number => entry.tokens.length + pending.length

/** Returns `true` if a run ahead has computed the one pending token. */
const isAhead = ({ ahead, pending }: ActiveSlot): boolean =>
  ahead !== null && pending.length === 1 && ahead.token === pending[0]

/** Removes the draft or the run ahead from the sequence. */
async function discardExcess(slot: ActiveSlot): Promise<void> {
  const excess = (slot.draft?.tokens.length ?? 0) + Number(slot.ahead !== null)
  slot.releaseLogits()
  if (excess > 0) await slot.entry.sequence.truncate(slot.entry.tokens.length)
}

/** Lets the answer read the stored logits after its last accepted draft token. */
function readDraftRow(slot: ActiveSlot, { candidates, logits, tokens }: Draft): Promise<void> {
  const index = candidates.length - 1 - tokens.length
  return slot.read(logits, index, candidates[index] as Candidates)
}

/** Moves the first `count` pending tokens to the computed ones. */
function commitTokens({ entry, pending }: ActiveSlot, count: number): void {
  entry.tokens.push(...pending.splice(0, count))
}

/** Longest time of a chunk in milliseconds while other answers wait. */
const MAX_CHUNK_MS = 200

/**
 * Longest time of a chunk in milliseconds while no other answer waits. With two chunks queued on
 * the device, a new or canceled request waits for both.
 */
const MAX_CHUNK_ALONE_MS = 500

/** A chunk may take as long as this many decode steps, even if that exceeds the limits above. */
const MAX_CHUNK_DECODE_STEPS = 3

/** Shortest chunk in tokens. */
const MIN_CHUNK_TOKENS = 16

/** Longest chunk in tokens before the first measurement. */
const MAX_FIRST_CHUNK_TOKENS = 64

/**
 * Largest growth factor between chunks, a guess: predictions far from measured lengths are unreliable. With it, a
 * fast device computes a prompt of 2,048 tokens in three chunks: 64, 512 and the rest.
 */
const MAX_CHUNK_GROWTH = 8

/** Length of a chunk in tokens and its time in milliseconds. */
interface Measurement {
  tokens: number
  ms: number
}

/**
 * Chooses the length of prefill chunks from measured times, so that decoding continues meanwhile
 * and a cancel takes effect. The lengths double from 16 tokens up to a maximum. There are few of
 * them because a device may compile a shader for each.
 */
export class ChunkSizer {
  readonly #lengths: readonly number[]
  #latest: Measurement | null = null
  /** Latest measurement of a clearly different length. */
  #reference: Measurement | null = null
  #deviceFreeAt = 0

  constructor(maxTokens: number) {
    const lengths: number[] = []
    for (let length = MIN_CHUNK_TOKENS; length < maxTokens; length *= 2) lengths.push(length)
    this.#lengths = [...lengths, maxTokens]
  }

  /** Returns the length of the next chunk. It is longer if the prompt is `alone`: none waits. */
  chunkTokens(alone: boolean): number {
    const latest = this.#latest
    const targetMs = alone ? MAX_CHUNK_ALONE_MS : MAX_CHUNK_MS
    const limitMs =
      latest && this.#reference
        ? Math.max(targetMs, MAX_CHUNK_DECODE_STEPS * this.#predictMs(latest, 1))
        : targetMs
    const fits = (length: number): boolean =>
      latest
        ? this.#predictMs(latest, length) <= limitMs && length <= MAX_CHUNK_GROWTH * latest.tokens
        : length <= MAX_FIRST_CHUNK_TOKENS
    return this.#lengths.findLast(fits) ?? (this.#lengths[0] as number)
  }

  /**
   * Records a chunk of `tokens` that was submitted at `start`, in milliseconds. `done` resolves
   * when the device has computed it. The result resolves after the time is recorded.
   */
  async record(tokens: number, start: number, done: Promise<void>): Promise<void> {
    await done
    const now = performance.now()
    // The device may have started this chunk only after it finished the earlier ones.
    const ms = now - Math.max(start, this.#deviceFreeAt)
    this.#deviceFreeAt = now
    if (tokens < (this.#lengths[0] as number)) return
    const latest = this.#latest
    if (latest && Math.max(tokens / latest.tokens, latest.tokens / tokens) >= 2)
      this.#reference = latest
    this.#latest = { tokens, ms }
  }

  /** Predicts the time of a chunk. As a chunk has a fixed cost, a token costs less than average. */
  #predictMs(measured: Measurement, tokens: number): number {
    const average = measured.ms / measured.tokens
    const reference = this.#reference
    const msPerToken = reference
      ? Math.max(average / 8, (measured.ms - reference.ms) / (measured.tokens - reference.tokens))
      : average / 2
    return measured.ms + Math.min(average, msPerToken) * (tokens - measured.tokens)
  }
}

/** Possible numbers of draft tokens. There are few, as a device compiles shaders for some. */
const DRAFT_LENGTHS = [3, 7]

/** Number of recorded times for each size. The shortest counts, since others may have delays. */
const MAX_SAMPLES = 6

/** Number of recorded times after which they are used. The first may include compilation. */
const MIN_SAMPLES = 3

/** Assumed cost until then, relative to a forward pass of a single token; a guess. */
const ASSUMED_COST = 1.3

/** Chooses how many draft tokens a forward pass verifies, from measured times on this device. */
export class DraftSizer {
  readonly #times = new Map<number, number[]>()

  /**
   * Returns the number of draft tokens, at most `maxTokens`. Returns 0 if drafts do not pay
   * off. `acceptanceRate` is a number from 0 to 1.
   */
  draftLength(acceptanceRate: number, maxTokens: number): number {
    let best = { draftTokens: 0, gain: 1 }
    for (const draftTokens of DRAFT_LENGTHS) {
      const gain = expectedTokens(acceptanceRate, draftTokens) / this.#cost(draftTokens)
      if (draftTokens <= maxTokens && gain > best.gain) best = { draftTokens, gain }
    }
    return best.draftTokens
  }

  /** Records the time of a forward pass of one token and `draftTokens` draft tokens. */
  record(draftTokens: number, milliseconds: number): void {
    const samples = [...(this.#times.get(draftTokens) ?? []), milliseconds]
    this.#times.set(draftTokens, samples.slice(-MAX_SAMPLES))
  }

  #cost(draftTokens: number): number {
    const [one = [], more = []] = [0, draftTokens].map((each) => this.#times.get(each))
    if (Math.min(one.length, more.length) < MIN_SAMPLES) return ASSUMED_COST
    return Math.min(...more) / Math.min(...one)
  }
}

/** Returns the expected tokens of one forward pass: the accepted drafts and one sampled token. */
function expectedTokens(acceptanceRate: number, draftTokens: number): number {
  let sum = 1
  for (let count = 1; count <= draftTokens; count += 1) sum += acceptanceRate ** count
  return sum
}
