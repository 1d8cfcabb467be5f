/**
 * Lets any number of answers share one decoder. Each iteration of the loop asks the scheduling
 * policy (`policy.ts`) what to run next, and hands the decision to the executor (`executor.ts`).
 * This file keeps the books: which answers run and wait, and what the last steps took.
 *
 * An answer (`decode-loop.ts`) has a `SlotHandle`, the handle to its slot (`slot.ts`). The slot
 * holds the pending tokens and the pending read of the logits after them. After a lost device,
 * another decoder opens and every answer is computed again.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder } from '../decoder.ts'
import { commonPrefixLength } from '../text/chat-template.ts'
import { createExecutor, type Executor } from './executor.ts'
import { decide, type Decision, type PolicyState, type WaitingSequence } from './policy.ts'
import {
  createPrefixCache,
  type PrefixCache,
  type PrefixCacheBudget,
  type SequenceEntry,
} from './prefix-cache.ts'
import {
  allTokens,
  awaitRead,
  closeSequence,
  createSlot,
  isActive,
  isReady,
  type LogitsReader,
  rejectRead,
  resolveRead,
  restart,
  type SequenceRequest,
  type Slot,
} from './slot.ts'
import { createYielder, type Yielder } from './yielder.ts'

/** Options of {@link createScheduler}. */
interface SchedulerOptions {
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

/** Creates a scheduler that runs while answers wait. */
export function createScheduler({ decoder, reopen, budget }: SchedulerOptions): Scheduler {
  const prefixCache = createPrefixCache(budget)
  const state: SchedulerState = {
    executor: createExecutor({ decoder, reopen, prefixCache }),
    prefixCache,
    yielder: createYielder(),
    slots: [],
    waiting: [],
    finished: [],
    lastChunkMs: 0,
    decodeMs: 0,
    failure: null,
    running: null,
    closed: false,
  }
  return {
    add: (request) => addAnswer(state, request),
    close: () => close(state),
  }
}

function addAnswer(state: SchedulerState, request: SequenceRequest): SlotHandle {
  const slot = createSlot(request)
  state.slots.push(slot)
  const abort = (): void => rejectRead(slot, aborted())
  request.signal.addEventListener('abort', abort)

  const enqueueRead = (reader: LogitsReader | null): Promise<void> => {
    if (state.closed) fail(state, slot, unloaded())
    const rejection = slot.error ?? (request.signal.aborted ? aborted() : null)
    if (rejection) return Promise.reject(rejection)
    const settled = awaitRead(slot, reader)
    moveToEnd(state, slot)
    wake(state)
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
      if (!state.slots.includes(slot)) return
      state.slots = state.slots.filter((each) => each !== slot)
      state.finished.push(slot)
      wake(state)
    },
  }
}

/** Makes the answer the last one that waits. */
function moveToEnd(state: SchedulerState, slot: Slot): void {
  state.waiting = [...state.waiting.filter((each) => each !== slot), slot]
}

function wake(state: SchedulerState): void {
  state.running ??= runLoop(state)
}

async function runLoop(state: SchedulerState): Promise<void> {
  for (;;) {
    await state.yielder.next()
    try {
      cacheFinished(state)
      state.waiting = state.waiting.filter(({ pendingRead }) => pendingRead !== null)
      if (state.waiting.length === 0 || state.closed) break
      if (state.failure) await state.executor.reopen()
      state.failure = null
      await runNext(state)
    } catch (thrown) {
      recover(state, InoriginError.from(thrown))
    }
  }
  state.running = null
}

/** Runs what the policy decides, and records how long it took. */
async function runNext(state: SchedulerState): Promise<void> {
  const decision = decide(toPolicyState(state))
  const start = performance.now()
  if (decision.type === 'start' || decision.type === 'prefill') {
    await runPrefill(state, decision)
    for (const slot of state.slots) slot.decodedSinceChunk = false
    state.lastChunkMs = performance.now() - start
    state.decodeMs = 0
  } else {
    await runDecode(state, decision)
    state.decodeMs += performance.now() - start
  }
}

async function runPrefill(
  state: SchedulerState,
  decision: Extract<Decision<Slot>, { type: 'start' | 'prefill' }>,
): Promise<void> {
  const { executor } = state
  const { slot } = decision
  moveToEnd(state, slot)
  const active = isActive(slot) ? slot : await executor.start(slot, runningEntries(state))
  // The answer may have been canceled during the start.
  if (decision.type === 'start' || !slot.pendingRead) return resolveRead(slot)
  await executor.prefill(active, decision.tokens)
  // One chunk may queue behind another on the device, but a decode step must not wait for both.
  await executor.awaitChunks(state.waiting.some(isReady) ? 0 : 1)
}

async function runDecode(
  { executor }: SchedulerState,
  decision: Extract<Decision<Slot>, { type: 'decode' | 'verify' }>,
): Promise<void> {
  const slots = (decision.type === 'decode' ? decision.slots : [decision.slot]).filter(isActive)
  for (const slot of slots) slot.decodedSinceChunk = true
  const [first] = slots
  if (decision.type === 'decode') await executor.decode(slots, decision.drafts)
  else if (first) await executor.verify(first)
}

/**
 * Moves the sequences of finished answers to the prefix cache. A wrong draft in a sequence is
 * removed when the sequence is truncated for the next prompt.
 */
function cacheFinished({ finished, executor, prefixCache }: SchedulerState): void {
  for (const slot of finished.splice(0)) {
    slot.draft?.logits.release()
    if (!slot.entry) continue
    if (!executor.canTruncate) slot.entry.sequence.checkpoint()
    prefixCache.insert(slot.entry)
  }
}

/** Makes the running answers start again, or fails those that the error concerns. */
function recover(state: SchedulerState, thrown: InoriginError): void {
  const { prefixCache, slots, finished } = state
  // The prefix cache is freed first. If it held anything, the answers start again.
  if (thrown.code === 'out_of_memory' && prefixCache.clear()) return slots.forEach(restart)
  state.failure = thrown
  const isDeviceLost = thrown.code === 'device_lost'
  for (const slot of slots) {
    slot.lostDevices += 1
    if (!isDeviceLost || slot.lostDevices > MAX_LOST_DEVICES) fail(state, slot, thrown)
  }
  state.slots.forEach(restart)
  finished.splice(0).forEach(closeSequence)
  prefixCache.clear()
}

function fail(state: SchedulerState, slot: Slot, error: InoriginError): void {
  slot.error = error
  rejectRead(slot, error)
  closeSequence(slot)
  state.slots = state.slots.filter((each) => each !== slot)
}

async function close(state: SchedulerState): Promise<void> {
  state.closed = true
  await state.running
  for (const slot of state.slots) fail(state, slot, unloaded())
  state.finished.splice(0).forEach(closeSequence)
  state.prefixCache.clear()
  state.yielder.close()
}

const aborted = (): InoriginError => new InoriginError('aborted', 'The request was canceled.')

const unloaded = (): InoriginError =>
  new InoriginError('unavailable', 'The model was unloaded during the request. Retry it.', {
    retryAfter: 1,
  })

// The state of the scheduler, and what the policy sees of it.

/** The books of the scheduler. */
interface SchedulerState {
  readonly executor: Executor
  readonly prefixCache: PrefixCache
  readonly yielder: Yielder
  slots: Slot[]
  /** Answers with a pending read, the one that waits longest first. */
  waiting: Slot[]
  /** Released answers whose sequences are not in the prefix cache yet. */
  finished: Slot[]
  /** Time in milliseconds of the last prefill chunk. */
  lastChunkMs: number
  /** Time in milliseconds of the decode steps after the last prefill chunk. */
  decodeMs: number
  /** Error after which the decoder must be replaced. */
  failure: InoriginError | null
  /** The loop, while answers wait. */
  running: Promise<void> | null
  closed: boolean
}

/** Returns the state in the words of the policy. */
function toPolicyState(state: SchedulerState): PolicyState<Slot> {
  const { executor, waiting, slots, lastChunkMs, decodeMs } = state
  const { decoder, canTruncate } = executor
  return {
    waiting: waiting.map((slot) => toWaitingSequence(state, slot)),
    sequences: slots.length,
    maxBatchSize: decoder.maxBatchSize,
    chunkTokens: { alone: executor.chunkTokens(true), shared: executor.chunkTokens(false) },
    lastChunkMs,
    decodeMs,
    canTruncate,
    needsCheckpoints: decoder.checkpoints !== false,
  }
}

function toWaitingSequence(state: SchedulerState, slot: Slot): WaitingSequence<Slot> {
  const { entry, pending, pendingRead, draft, request, checkpointLengths } = slot
  const reader = pendingRead?.reader ?? null
  const cachedTokens = entry
    ? 0
    : state.prefixCache.hitLength(pending, request.partition, runningEntries(state))
  return {
    slot,
    hasSequence: entry !== null,
    computedTokens: entry?.tokens.length ?? cachedTokens,
    pendingTokens: pending.length - cachedTokens,
    sharedTokens: entry ? new Map() : sharedTokens(state, slot),
    checkpointLengths,
    startsOnly: reader === null,
    // Without a drafter, the request differs from the one that was made for the draft.
    matchesDraft: Boolean(reader?.drafter) && draft !== null && draft.tokens[0] === pending[0],
    hasCertainDraft: reader?.drafter?.isCertain ?? false,
    decodedSinceChunk: slot.decodedSinceChunk,
  }
}

/** Returns the common prefix with each running prompt. It excludes the last token. */
function sharedTokens({ waiting }: SchedulerState, { pending, request }: Slot): Map<Slot, number> {
  const others = waiting.filter(
    (other) => isActive(other) && other.request.partition === request.partition,
  )
  return new Map(
    others.map((other) => [
      other,
      Math.min(commonPrefixLength(allTokens(other), pending), pending.length - 1),
    ]),
  )
}

/** Returns the sequences of the running answers. */
const runningEntries = ({ slots }: SchedulerState): SequenceEntry[] =>
  slots.flatMap(({ entry }) => entry ?? [])
