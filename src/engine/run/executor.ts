/**
 * Executor: runs what the scheduling policy decided. Its verbs are `prefill`, `decode` and
 * `verify`. Each one computes the logits of sequences and lets their answers read them.
 */
import type { Candidates, Decoder } from '../decoder.ts'
import { createChunkSizer } from './chunk-sizer.ts'
import { createDraftSizer, type DraftSizer } from './draft-sizer.ts'
import type { PrefixCache, SequenceEntry } from './prefix-cache.ts'
import { readRow, readRows, requestCandidates } from './read-logits.ts'
import { type ActiveSlot, allTokens, type Draft, rejectRead, type Slot } from './slot.ts'

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
