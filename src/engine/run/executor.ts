/**
 * Executor: runs what the scheduling policy decided. Its verbs are `prefill`, `decode` and
 * `verify`. Each one computes the logits of sequences and lets their answers read them.
 */
import type { CandidateRequest, Candidates, Decoder, Logits } from '../decoder.ts'
import type { PrefixCache, SequenceEntry } from './prefix-cache.ts'
import {
  type ActiveSlot,
  allTokens,
  type Draft,
  rejectRead,
  resolveRead,
  type Slot,
} from './slot.ts'

/** Options of {@link createExecutor}. */
interface ExecutorOptions {
  decoder: Decoder
  /** Frees the failed decoder and resolves to a new one. */
  reopen: () => Promise<Decoder>
  prefixCache: PrefixCache
}

/** Runs sequences on a decoder. Each call must settle before the next one. */
export interface Executor {
  readonly decoder: Decoder
  /** `true` if a sequence can be truncated to every length; `null` before the first chunk. */
  readonly canTruncate: boolean | null
  /** Returns the length in tokens of the next chunk of a sequence that is `alone`, or is not. */
  chunkTokens(alone: boolean): number
  /** Gives the slot a sequence: the longest cached prefix of its prompt, or an empty one. */
  start(slot: Slot, running: readonly SequenceEntry[]): Promise<ActiveSlot>
  /**
   * Computes the first `maxTokens` pending tokens, or as many as the sequence allows in a chunk.
   * Reads the logits if no tokens are left. If an image in them is not encoded, only encodes it, or
   * a part of it: other sequences wait for no more than that.
   */
  prefill(slot: ActiveSlot, maxTokens: number): Promise<void>
  /**
   * Computes the one pending token of each sequence, and reads the logits. If `drafts` is `true`,
   * draft tokens may follow the pending token of a single sequence.
   */
  decode(slots: readonly ActiveSlot[], drafts: boolean): Promise<void>
  /** Accepts the pending token, which equals the next draft token, and reads the logits after it. */
  verify(slot: ActiveSlot): Promise<void>
  /** Resolves when at most `count` prefill chunks are queued on the device. */
  awaitChunks(count: 0 | 1): Promise<void>
  /** Replaces the decoder after it failed. */
  reopen(): Promise<void>
}

/** Creates an executor over a decoder. */
export function createExecutor(options: ExecutorOptions): Executor {
  let { decoder } = options
  const chunkSizer = createChunkSizer(decoder.maxChunkTokens)
  const draftSizer = createDraftSizer()
  let canTruncate: boolean | null = null
  const queuedChunks = createChunkQueue()

  return {
    get decoder() {
      return decoder
    },
    get canTruncate() {
      return canTruncate
    },
    chunkTokens: chunkSizer.chunkTokens,
    async start(slot, running) {
      const { partition, onStart } = slot.request
      const hit = await options.prefixCache.acquire(allTokens(slot), partition, running)
      const entry = hit ?? { sequence: decoder.open(), tokens: [], partition }
      const active = Object.assign(slot, { entry })
      slot.pending.splice(0, entry.tokens.length)
      if (!slot.started) onStart({ cachedTokens: entry.tokens.length })
      slot.started = true
      return active
    },
    async prefill(slot, maxTokens) {
      // Forced tokens differ from the draft.
      await discardDraft(slot)
      const { sequence, tokens } = slot.entry
      const count = Math.min(maxTokens, sequence.maxChunkTokens ?? maxTokens)
      if (await decoder.encodeNext?.(slot.pending.slice(0, count))) return
      const isFirstChunk = tokens.length === 0
      const isLastChunk = count === slot.pending.length
      const start = performance.now()
      await runChunk(slot, count)
      if (isFirstChunk && count > 1)
        canTruncate ??= sequence.reusableLength(count - 1) === count - 1
      if (!canTruncate && slot.checkpointLengths.includes(tokens.length)) sequence.checkpoint()
      if (isLastChunk) return
      queuedChunks.add(chunkSizer.record(count, start, decoder.synchronize()))
    },
    async decode(slots, drafts) {
      for (const slot of slots) await discardDraft(slot)
      const [first] = slots
      if (first && drafts) await runDraftStep(decoder, first, draftSizer)
      else await runDecodeStep(decoder, slots)
    },
    async verify(slot) {
      const draft = slot.draft as Draft
      draft.tokens.shift()
      commitTokens(slot, 1)
      await readDraftRow(slot, draft)
    },
    awaitChunks: queuedChunks.wait,
    async reopen() {
      decoder = await options.reopen()
    },
  }
}

/** Creates a queue of the prefill chunks that the device computes. It remembers the last ones. */
function createChunkQueue() {
  let lastDone = Promise.resolve()
  let earlierDone = lastDone
  return {
    add(done: Promise<void>): void {
      earlierDone = lastDone
      lastDone = done
    },
    wait: (count: 0 | 1): Promise<void> => (count === 0 ? lastDone : earlierDone),
  }
}

/** Computes the first `count` pending tokens. Reads the logits if no tokens are left. */
async function runChunk(slot: ActiveSlot, count: number): Promise<void> {
  const { sequence } = slot.entry
  const tokens = slot.pending.slice(0, count)
  if (count < slot.pending.length) {
    await sequence.extend(tokens)
    return commitTokens(slot, count)
  }
  const pendingOutcomes = [requestCandidates(slot)]
  const logits = await sequence.forward(tokens)
  commitTokens(slot, count)
  await readRows([slot], pendingOutcomes, logits)
}

/** Computes the one pending token of each answer in a batch, and reads the logits. */
async function runDecodeStep(decoder: Decoder, slots: readonly ActiveSlot[]): Promise<void> {
  const inputs = slots.map(({ entry, pending }) => ({
    sequence: entry.sequence,
    token: pending[0] as number,
  }))
  const pendingOutcomes = slots.map((slot) => requestCandidates(slot))
  const logits = await decoder.step(inputs)
  for (const slot of slots) commitTokens(slot, 1)
  await readRows(slots, pendingOutcomes, logits)
}

/**
 * Computes the one pending token, with draft tokens after it if they pay off. Reads the logits of
 * the pending token. Keeps the logits of the drafts until they are verified.
 */
async function runDraftStep(
  decoder: Decoder,
  slot: ActiveSlot,
  draftSizer: DraftSizer,
): Promise<void> {
  const { drafter = null, maxDraftTokens = 0 } = slot.pendingRead?.reader ?? {}
  const isCertain = drafter?.isCertain ?? false
  const length = isCertain
    ? Math.min(maxDraftTokens, (slot.entry.sequence.maxChunkTokens ?? decoder.maxChunkTokens) - 1)
    : draftSizer.draftLength(drafter?.acceptanceRate ?? 0, maxDraftTokens)
  const drafted = drafter?.draft(length) ?? []
  const start = performance.now()
  if (drafted.length === 0) {
    await runDecodeStep(decoder, [slot])
    return draftSizer.record(0, performance.now() - start)
  }
  const tokens = [...slot.pending, ...drafted]
  const pendingOutcomes = tokens.map((_, index) => requestCandidates(slot, drafted.slice(0, index)))
  const logits = await slot.entry.sequence.forward(tokens, tokens.length)
  commitTokens(slot, 1)
  slot.draft = { tokens: drafted, candidates: [], logits }
  const outcomes = await Promise.all(pendingOutcomes)
  slot.draft.candidates = await logits.top(outcomes.map((each) => each.request))
  if (!isCertain) draftSizer.record(drafted.length, performance.now() - start)
  const [first] = outcomes
  if (first?.error === undefined) await readDraftRow(slot, slot.draft)
  else rejectRead(slot, first.error)
}

/** Removes the draft from the sequence. */
async function discardDraft(slot: ActiveSlot): Promise<void> {
  const drafted = slot.draft?.tokens.length ?? 0
  slot.draft?.logits.release()
  slot.draft = null
  if (drafted > 0) await slot.entry.sequence.truncate(slot.entry.tokens.length)
}

/** Lets the answer read the stored logits after its last accepted draft token. */
function readDraftRow(slot: ActiveSlot, { candidates, logits, tokens }: Draft): Promise<void> {
  const index = candidates.length - 1 - tokens.length
  return readRow(slot, logits, index, candidates[index] as Candidates)
}

/** Moves the first `count` pending tokens to the computed ones. */
function commitTokens({ entry, pending }: ActiveSlot, count: number): void {
  entry.tokens.push(...pending.splice(0, count))
}

// Lets answers read the logits of a forward pass, and settles their pending reads.

/** Result of a reader's `requestCandidates`. */
interface RequestOutcome {
  request: CandidateRequest
  /** Error of the reader's `requestCandidates`. */
  error?: unknown
}

const DEFAULT_REQUEST: CandidateRequest = { count: 1, temperature: 1 }

/**
 * Requests the candidates before the logits are computed, so that a token mask is computed in
 * parallel.
 */
async function requestCandidates(
  { pendingRead }: Slot,
  drafted: readonly number[] = [],
): Promise<RequestOutcome> {
  try {
    return { request: (await pendingRead?.reader?.requestCandidates(drafted)) ?? DEFAULT_REQUEST }
  } catch (error) {
    return { request: DEFAULT_REQUEST, error }
  }
}

/**
 * Lets each answer read its row of logits. An error of a reader fails its own answer only. An error
 * of the decoder is thrown and concerns all answers.
 */
async function readRows(
  slots: readonly Slot[],
  pendingOutcomes: readonly Promise<RequestOutcome>[],
  logits: Logits,
): Promise<void> {
  try {
    const outcomes = await Promise.all(pendingOutcomes)
    const candidates = await logits.top(outcomes.map((each) => each.request))
    for (const [index, slot] of slots.entries()) {
      const { error } = outcomes[index] as RequestOutcome
      if (error !== undefined) rejectRead(slot, error)
      else await readRow(slot, logits, index, candidates[index] as Candidates)
    }
  } finally {
    logits.release()
  }
}

/** Lets one answer read its row of logits, and settles its pending read. */
async function readRow(
  slot: Slot,
  logits: Logits,
  index: number,
  candidates: Candidates,
): Promise<void> {
  let decoderFailure: { thrown: unknown } | null = null
  const row = async (): Promise<Float32Array> => {
    try {
      return await logits.row(index)
    } catch (thrown) {
      decoderFailure = { thrown }
      throw thrown
    }
  }
  try {
    await slot.pendingRead?.reader?.readLogits({ candidates, row })
    resolveRead(slot)
  } catch (thrown) {
    if (decoderFailure) throw thrown
    rejectRead(slot, thrown)
  }
}

// Chooses the length of prefill chunks, so that decoding continues meanwhile and a cancel takes
// effect.

/** Lengths of prefill chunks, adapted to measured times. */
interface ChunkSizer {
  /**
   * Returns the length of the next chunk in tokens, predicted from the times of earlier chunks. It
   * is longer if the prompt is `alone`, so that no other answer waits.
   */
  chunkTokens(alone: boolean): number
  /**
   * Records a chunk of `tokens` that was submitted at `start`, in milliseconds. `done` resolves
   * when the device has computed it. The result resolves after the time is recorded.
   */
  record(tokens: number, start: number, done: Promise<void>): Promise<void>
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
 * Largest growth factor between chunks. Predictions far from all measured lengths are unreliable.
 */
const MAX_CHUNK_GROWTH = 4

/** Length of a chunk in tokens and its time in milliseconds. */
interface Measurement {
  tokens: number
  ms: number
}

/**
 * Creates chunk lengths that double from 16 tokens up to `maxTokens`. There are few of them
 * because a device may compile a shader for each.
 */
export function createChunkSizer(maxTokens: number): ChunkSizer {
  const lengths = [maxTokens]
  for (let length = MIN_CHUNK_TOKENS; length < maxTokens; length *= 2) lengths.splice(-1, 0, length)
  let latest: Measurement | null = null
  /** Latest measurement of a clearly different length. */
  let reference: Measurement | null = null
  let deviceFreeAt = 0

  /**
   * Returns the milliseconds that one more token costs. It is less than the average, because every
   * chunk has a fixed cost.
   */
  const msPerToken = ({ tokens, ms }: Measurement): number => {
    const average = ms / tokens
    if (!reference) return average / 2
    const measured = (ms - reference.ms) / (tokens - reference.tokens)
    return Math.min(average, Math.max(average / 8, measured))
  }

  const predictMs = (measurement: Measurement, tokens: number): number =>
    measurement.ms + msPerToken(measurement) * (tokens - measurement.tokens)

  const chunkTokens: ChunkSizer['chunkTokens'] = (alone) => {
    const known = latest
    const targetMs = alone ? MAX_CHUNK_ALONE_MS : MAX_CHUNK_MS
    const limitMs =
      known && reference
        ? Math.max(targetMs, MAX_CHUNK_DECODE_STEPS * predictMs(known, 1))
        : targetMs
    const fits = (candidate: number): boolean =>
      known
        ? predictMs(known, candidate) <= limitMs && candidate <= MAX_CHUNK_GROWTH * known.tokens
        : candidate <= MAX_FIRST_CHUNK_TOKENS
    return lengths.findLast(fits) ?? (lengths[0] as number)
  }

  const record: ChunkSizer['record'] = async (tokens, start, done) => {
    await done
    const now = performance.now()
    // The device may have started this chunk only after it finished the earlier ones.
    const ms = now - Math.max(start, deviceFreeAt)
    deviceFreeAt = now
    if (tokens < Math.min(MIN_CHUNK_TOKENS, maxTokens)) return
    if (latest && Math.max(tokens / latest.tokens, latest.tokens / tokens) >= 2) reference = latest
    latest = { tokens, ms }
  }
  return { chunkTokens, record }
}

// Chooses how many draft tokens a forward pass verifies, from measured times on this device.

/** Number of draft tokens, adapted to measured times. */
interface DraftSizer {
  /**
   * Returns the number of draft tokens, at most `maxTokens`. Returns 0 if drafts do not pay
   * off. `acceptanceRate` is a number from 0 to 1.
   */
  draftLength(acceptanceRate: number, maxTokens: number): number
  /** Records the time of a forward pass of one token and `draftTokens` draft tokens. */
  record(draftTokens: number, milliseconds: number): void
}

/**
 * Possible numbers of draft tokens. There are few because a device compiles shaders for some of
 * them.
 */
const DRAFT_LENGTHS = [3, 7]

/**
 * Number of recorded times for each size. The shortest one counts, since others may include delays.
 */
const MAX_SAMPLES = 6

/** Number of recorded times after which they are used. The first may include compilation. */
const MIN_SAMPLES = 3

/** Assumed cost until then, relative to a forward pass of a single token. */
const ASSUMED_COST = 1.3

/** Creates the state without measurements. */
export function createDraftSizer(): DraftSizer {
  const times = new Map<number, number[]>()

  const shortestTime = (draftTokens: number): number | null => {
    const samples = times.get(draftTokens) ?? []
    return samples.length < MIN_SAMPLES ? null : Math.min(...samples)
  }

  const cost = (draftTokens: number): number => {
    const [one, more] = [shortestTime(0), shortestTime(draftTokens)]
    return one === null || more === null ? ASSUMED_COST : more / one
  }

  return {
    draftLength: (acceptanceRate, maxTokens) => {
      let best = { draftTokens: 0, gain: 1 }
      for (const draftTokens of DRAFT_LENGTHS) {
        const gain = expectedTokens(acceptanceRate, draftTokens) / cost(draftTokens)
        if (draftTokens <= maxTokens && gain > best.gain) best = { draftTokens, gain }
      }
      return best.draftTokens
    },
    record: (draftTokens, milliseconds) => {
      times.set(draftTokens, [...(times.get(draftTokens) ?? []), milliseconds].slice(-MAX_SAMPLES))
    },
  }
}

/**
 * Returns the expected number of tokens from one forward pass: the accepted drafts and one sampled
 * token.
 */
function expectedTokens(acceptanceRate: number, draftTokens: number): number {
  let sum = 1
  for (let count = 1; count <= draftTokens; count += 1) sum += acceptanceRate ** count
  return sum
}
