/**
 * Lets any number of answers share one decoder. Each iteration of the loop runs either one prefill
 * chunk of one prompt or one decode step of a batch. After each chunk, every decoding sequence gets
 * one step. If the chunk was slow, more steps follow until they took as long as the chunk.
 *
 * An answer (`decode-loop.ts`) has a `SlotHandle`, the handle to its slot (`slot.ts`). The slot
 * holds the pending tokens and the pending read of the logits after them. Answers with one pending
 * token decode together in a batch.
 *
 * A prompt starts from the longest cached prefix (`prefix-cache.ts`), or waits for a prompt
 * that is computing the same prefix. A single answer may verify draft tokens in its decode step
 * (`drafter.ts`, `draft-sizer.ts`). After a lost device, another decoder opens and every answer is
 * computed again.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder } from '../decoder.ts'
import {
  type ActiveSlot,
  verifyDraft,
  runPrefillChunk,
  discardDraft,
  runDecodeStep,
  runDraftStep,
} from './executor.ts'
import {
  allTokens,
  restart,
  createSlot,
  rejectRead,
  closeSequence,
  resolveRead,
  awaitRead,
} from './slot.ts'
import type { Slot, LogitsReader, SequenceRequest } from './slot.ts'
import {
  createPrefixCache,
  type PrefixCacheBudget,
  commonPrefixLength,
  type SequenceEntry,
} from './prefix-cache.ts'
import { createChunkSizer } from './chunk-sizer.ts'
import { createYielder } from './yielder.ts'
import { createDraftSizer } from './draft-sizer.ts'

/** Options of {@link createScheduler}. */
export interface SchedulerOptions {
  decoder: Decoder
  /** Frees the failed decoder and resolves to a new one. */
  reopen: () => Promise<Decoder>
  /** Limits of the prefix cache. */
  budget: PrefixCacheBudget
}

/** Runs answers on one decoder. */
export interface Scheduler {
  /** Adds an answer. */
  add(request: SequenceRequest): SlotHandle
  /** Rejects all answers with `unavailable`. The caller closes the decoder. */
  close(): Promise<void>
}

/** Handle of one answer. Its promises reject with `aborted` as soon as the signal aborts. */
export interface SlotHandle {
  /** Resolves after `onStart` was called. */
  start(): Promise<void>
  /**
   * Appends tokens to the prompt and the earlier tokens, and computes them. Resolves after `reader`
   * has read the logits of the next token.
   */
  computeNext(tokens: readonly number[], reader: LogitsReader): Promise<void>
  /** Ends the answer. Its sequence moves to the prefix cache. */
  release(): void
}

/** Number of lost devices that an answer survives. After more, its prompt may be the cause. */
const MAX_LOST_DEVICES = 2

/** Longest prefill chunk in milliseconds that calls for no additional decode steps. */
const FAST_CHUNK_MS = 50

/**
 * Longest time in milliseconds of the decode steps after one chunk. A single stall of the device
 * must not delay the prompt as long.
 */
const MAX_DECODE_BUDGET_MS = 2_000

/** Creates a scheduler that runs while answers wait. */
export function createScheduler({
  decoder: firstDecoder,
  reopen,
  budget,
}: SchedulerOptions): Scheduler {
  const yielder = createYielder()
  const prefixCache = createPrefixCache(budget)
  const draftSizer = createDraftSizer()
  const chunkSizer = createChunkSizer(firstDecoder.maxChunkTokens)
  let decoder = firstDecoder
  let slots: Slot[] = []
  /** Answers with a pending read, the one that waits longest first. */
  let waiting: Slot[] = []
  /**
   * Answers whose decode step comes before the next chunk; `null` stands for all that are ready.
   */
  let decodesFirst: Set<Slot> | null = null
  /** Milliseconds of decode steps that come before the next chunk. */
  let decodeBudgetMs = 0
  /** Resolves when the device has computed the last chunk. */
  let lastChunkDone = Promise.resolve()
  let finished: Slot[] = []
  let failure: InoriginError | null = null
  /** `true` if a sequence can be truncated to every length; `null` before the first chunk. */
  let canTruncate: boolean | null = null
  let running: Promise<void> | null = null
  let closed = false

  const wake = (): void => {
    running ??= run()
  }

  const run = async (): Promise<void> => {
    for (;;) {
      await yielder.next()
      try {
        cacheFinished()
        waiting = waiting.filter(({ pendingRead }) => pendingRead !== null)
        if (waiting.length === 0 || closed) break
        await scheduleNext()
      } catch (thrown) {
        await recover(InoriginError.from(thrown))
      }
    }
    running = null
  }

  const scheduleNext = async (): Promise<void> => {
    if (failure) await reopenDecoder()
    const ready = waiting.filter(isReady)
    const prioritized = (decodesFirst ??= new Set(ready))
    const readyFirst = ready.filter((slot) => prioritized.has(slot))
    const next = waiting.find((slot) => !isReady(slot) && !waitsForPrefill(slot))
    const start = performance.now()
    if (next && readyFirst.length === 0 && (ready.length === 0 || decodeBudgetMs <= 0)) {
      decodesFirst = null
      await runNextChunk(next)
      const chunkMs = performance.now() - start
      decodeBudgetMs = chunkMs < FAST_CHUNK_MS ? 0 : Math.min(chunkMs, MAX_DECODE_BUDGET_MS)
      return
    }
    const batch = (next && readyFirst.length > 0 ? readyFirst : ready).slice(
      0,
      decoder.maxBatchSize,
    )
    for (const slot of batch) prioritized.delete(slot)
    await decodeBatch(batch as ActiveSlot[])
    decodeBudgetMs -= performance.now() - start
  }

  /** Runs one decode step of a batch, or reads draft tokens that were accepted. */
  const decodeBatch = async (batch: readonly ActiveSlot[]): Promise<void> => {
    const undecoded: ActiveSlot[] = []
    for (const slot of batch)
      if (!slot.draft || !(await verifyDraft(slot, slot.draft))) undecoded.push(slot)
    const [single] = undecoded
    // Drafts would delay other answers, and wrong ones have to be removed.
    if (single && canTruncate && waiting.length === 1)
      await runDraftStep(decoder, single, draftSizer)
    else if (single) await runDecodeStep(decoder, undecoded)
  }

  const runningEntries = (): SequenceEntry[] => slots.flatMap(({ entry }) => entry ?? [])

  /** Returns `true` if a running prefill will soon save this prompt a chunk or more. */
  const waitsForPrefill = (slot: Slot): boolean => {
    if (slot.entry) return false
    const { partition } = slot.request
    const prompt = allTokens(slot)
    const cachedLength = prefixCache.hitLength(prompt, partition, runningEntries())
    return waiting.some((other) => {
      if (!other.entry || isReady(other) || other.request.partition !== partition) return false
      const common = Math.min(commonPrefixLength(allTokens(other), prompt), prompt.length - 1)
      const sharedLength = canTruncate
        ? common
        : Math.max(0, ...other.checkpointLengths.filter((each) => each <= common))
      return (
        sharedLength > other.entry.tokens.length &&
        sharedLength - cachedLength >= chunkSizer.chunkTokens(false)
      )
    })
  }

  /** Runs the next prefill chunk of an answer and moves it to the end of the queue. */
  const runNextChunk = async (slot: Slot): Promise<void> => {
    waiting = [...waiting.filter((each) => each !== slot), slot]
    const isFirstChunk = slot.entry === null
    const active = slot.entry ? (slot as ActiveSlot) : await startPrefill(slot)
    if (slot.pendingRead?.reader == null) return resolveRead(slot)
    // Forced tokens differ from the draft.
    await discardDraft(active)
    const { entry, pending, checkpointLengths } = active
    const from = entry.tokens.length
    const maxTokens = Math.min(pending.length, chunkSizer.chunkTokens(slots.length === 1))
    const checkpointLength =
      canTruncate || decoder.checkpoints === false
        ? undefined
        : checkpointLengths.find((each) => each > from)
    const count =
      checkpointLength === undefined ? maxTokens : Math.min(maxTokens, checkpointLength - from)
    const isLastChunk = count === pending.length
    const start = performance.now()
    await runPrefillChunk(active, count)
    const { sequence } = entry
    if (isFirstChunk && from === 0 && count > 1)
      canTruncate ??= sequence.reusableLength(count - 1) === count - 1
    if (!canTruncate && checkpointLengths.includes(from + count)) sequence.checkpoint()
    if (isLastChunk) return
    const before = lastChunkDone
    lastChunkDone = chunkSizer.record(count, start, decoder.synchronize())
    // One chunk may queue behind another on the device, but a decode step must not wait for both.
    await (waiting.some(isReady) ? lastChunkDone : before)
  }

  const startPrefill = async (slot: Slot): Promise<ActiveSlot> => {
    const { partition, onStart } = slot.request
    const prompt = allTokens(slot)
    const hit = await prefixCache.acquire(prompt, partition, runningEntries())
    slot.entry = hit ?? { sequence: decoder.open(), tokens: [], partition }
    const { length } = slot.entry.tokens
    slot.pending.splice(0, length)
    if (!slot.started) onStart({ cachedTokens: length })
    slot.started = true
    return slot as ActiveSlot
  }

  /**
   * Moves the sequences of finished answers to the prefix cache. A wrong draft in a sequence is
   * removed when the sequence is truncated for the next prompt.
   */
  const cacheFinished = (): void => {
    for (const slot of finished.splice(0)) {
      slot.draft?.logits.release()
      if (!slot.entry) continue
      if (!canTruncate) slot.entry.sequence.checkpoint()
      prefixCache.insert(slot.entry)
    }
  }

  const recover = async (thrown: InoriginError): Promise<void> => {
    // The prefix cache is freed first. If it held anything, the answers start again.
    if (thrown.code === 'out_of_memory' && prefixCache.clear()) return slots.forEach(restart)
    failure = thrown
    const isDeviceLost = thrown.code === 'device_lost'
    for (const slot of slots) {
      slot.lostDevices += 1
      if (!isDeviceLost || slot.lostDevices > MAX_LOST_DEVICES) fail(slot, thrown)
    }
    slots.forEach(restart)
    finished.splice(0).forEach(closeSequence)
    prefixCache.clear()
  }

  const reopenDecoder = async (): Promise<void> => {
    decoder = await reopen()
    failure = null
  }

  const fail = (slot: Slot, thrown: unknown): void => {
    slot.error = InoriginError.from(thrown)
    rejectRead(slot, thrown)
    closeSequence(slot)
    slots = slots.filter((each) => each !== slot)
  }

  const add: Scheduler['add'] = (request) => {
    const slot = createSlot(request)
    slots.push(slot)
    const abort = (): void => rejectRead(slot, aborted())
    request.signal.addEventListener('abort', abort)

    const enqueueRead = (reader: LogitsReader | null): Promise<void> => {
      if (closed) fail(slot, unloaded())
      const rejection = slot.error ?? (request.signal.aborted ? aborted() : null)
      if (rejection) return Promise.reject(rejection)
      const settled = awaitRead(slot, reader)
      waiting = [...waiting.filter((each) => each !== slot), slot]
      wake()
      return settled
    }
    return {
      start: () => (slot.started ? Promise.resolve() : enqueueRead(null)),
      computeNext: (tokens, reader) => {
        slot.pending.push(...tokens)
        return enqueueRead(reader)
      },
      release: () => {
        request.signal.removeEventListener('abort', abort)
        if (!slots.includes(slot)) return
        slots = slots.filter((each) => each !== slot)
        finished.push(slot)
        wake()
      },
    }
  }

  const close = async (): Promise<void> => {
    closed = true
    await running
    for (const slot of slots) fail(slot, unloaded())
    finished.splice(0).forEach(closeSequence)
    prefixCache.clear()
    yielder.close()
  }
  return { add, close }
}

/** Returns `true` if the answer has one token to compute. */
const isReady = ({ entry, pending }: Slot): boolean => entry !== null && pending.length === 1

const aborted = (): InoriginError => new InoriginError('aborted', 'The request was cancelled.')

const unloaded = (): InoriginError =>
  new InoriginError('unavailable', 'The model was unloaded during the request. Retry it.', {
    retryAfter: 1,
  })
