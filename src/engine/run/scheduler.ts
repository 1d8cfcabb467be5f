/**
 * Lets any number of answers share one decoder. Each iteration of the loop asks the scheduling
 * policy (`policy.ts`) what to run next, and hands the decision to the executor (`executor.ts`).
 * This file keeps the books: which answers run and wait, and what the last steps took.
 *
 * An answer (`decode-loop.ts`) has a handle to its slot (`slot.ts`), which holds the pending tokens
 * and the pending read of the logits after them. After a lost device, another decoder opens and
 * every answer is computed again.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder, IdleRun } from '../decoder.ts'
import { commonPrefixLength } from '../text/chat-template.ts'
import { Executor } from './executor.ts'
import { decide, type Decision, type WaitingSequence } from './policy.ts'
import { PrefixCache, type PrefixCacheBudget, type SequenceEntry } from './prefix-cache.ts'
import { isActive, type LogitsReader, type SequenceRequest, Slot } from './slot.ts'
import { Yielder } from './yielder.ts'

/** Time in milliseconds without an answer after which the decoder may be warmed up further, a guess. */
const IDLE_MS = 500

/** Number of lost devices that an answer survives. After more, its prompt may be the cause. */
const MAX_LOST_DEVICES = 2

/** Handle of one answer. */
export type SlotHandle = ReturnType<Scheduler['add']>

/** Runs answers on one decoder, while answers wait. */
export class Scheduler {
  readonly #executor: Executor
  readonly #prefixCache: PrefixCache
  readonly #yielder = new Yielder()
  #slots: Slot[] = []
  /** Answers with a pending read, the one that waits longest first. */
  #waiting: Slot[] = []
  /** Released answers whose sequences are not in the prefix cache yet. */
  #finished: Slot[] = []
  /** Time in milliseconds of the last prefill chunk. */
  #lastChunkMs = 0
  /** Time in milliseconds of the decode steps after the last prefill chunk. */
  #decodeMs = 0
  /** `true` if the decoder has failed and must be replaced. */
  #hasFailed = false
  /** The loop, while answers wait, or a run that warms up. */
  #running: Promise<void> | null = null
  /** The runs that warm the decoder up and have not begun. */
  #idleRuns: IdleRun[]
  #idleTimer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false

  /**
   * @param options.reopen Frees the failed decoder and resolves to a new one.
   * @param options.idleRuns Runs that warm the decoder up, each of which begins when no answer has waited
   * for a while.
   */
  constructor(options: {
    decoder: Decoder
    reopen: () => Promise<Decoder>
    budget: PrefixCacheBudget
    idleRuns?: readonly IdleRun[]
  }) {
    this.#prefixCache = new PrefixCache(options.budget)
    this.#executor = new Executor(options.decoder, options.reopen, this.#prefixCache)
    this.#idleRuns = [...(options.idleRuns ?? [])]
    this.#rest()
  }

  /** Adds an answer. The promises of its handle reject with `aborted` when the signal aborts. */
  add(request: SequenceRequest) {
    const slot = new Slot(request)
    this.#slots.push(slot)
    const abort = (): void => slot.rejectRead(aborted())
    request.signal.addEventListener('abort', abort)

    const enqueueRead = (reader: LogitsReader | null): Promise<void> => {
      if (this.#isClosed) this.#fail(slot, unloaded())
      const rejection = slot.error ?? (request.signal.aborted ? aborted() : null)
      if (rejection) return Promise.reject(rejection)
      const settled = slot.awaitRead(reader)
      this.#moveToEnd(slot)
      this.#wake()
      return settled
    }
    return {
      /** Resolves after `onStart` was called. */
      start: (): Promise<void> => (slot.started ? Promise.resolve() : enqueueRead(null)),
      /**
       * Appends tokens to the prompt and the earlier tokens, and computes them. Resolves after
       * `reader` has read the logits of the next token.
       */
      computeNext: (tokens: readonly number[], reader: LogitsReader): Promise<void> => {
        slot.pending.push(...tokens)
        return enqueueRead(reader)
      },
      /** Ends the answer. Its sequence moves to the prefix cache. */
      release: (): void => {
        request.signal.removeEventListener('abort', abort)
        if (!this.#slots.includes(slot)) return
        this.#slots = this.#slots.filter((each) => each !== slot)
        this.#finished.push(slot)
        this.#wake()
      },
    }
  }

  /** Rejects all answers with `unavailable`. The caller closes the decoder. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idleTimer)
    await this.#running
    for (const slot of this.#slots) this.#fail(slot, unloaded())
    for (const slot of this.#finished.splice(0)) slot.close()
    this.#prefixCache.clear()
    this.#yielder.close()
  }

  /** Makes the answer the last one that waits. */
  #moveToEnd(slot: Slot): void {
    this.#waiting = [...this.#waiting.filter((each) => each !== slot), slot]
  }

  #wake(): void {
    clearTimeout(this.#idleTimer)
    this.#running ??= this.#run()
  }

  /** Lets the next run that warms up begin unless an answer comes first. */
  #rest(): void {
    if (this.#isClosed || this.#idleRuns.length === 0) return
    this.#idleTimer = setTimeout(() => (this.#running ??= this.#warmUp()), IDLE_MS)
  }

  async #warmUp(): Promise<void> {
    try {
      await this.#idleRuns.shift()?.()
    } catch (thrown) {
      this.#recover(InoriginError.from(thrown))
    }
    // Answers may have come meanwhile.
    await this.#run()
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#yielder.next()
      try {
        this.#cacheFinished()
        this.#waiting = this.#waiting.filter(({ pendingRead }) => pendingRead !== null)
        if (this.#waiting.length === 0 || this.#isClosed) break
        if (this.#hasFailed) await this.#executor.reopen()
        this.#hasFailed = false
        await this.#runNext()
      } catch (thrown) {
        this.#recover(InoriginError.from(thrown))
      }
    }
    this.#running = null
    this.#rest()
  }

  /** Runs what the policy decides, and records how long it took. */
  async #runNext(): Promise<void> {
    for (const slot of this.#waiting) if (this.#executor.outgrows(slot)) slot.restart()
    const decision = this.#decide()
    const start = performance.now()
    if (decision.type === 'start' || decision.type === 'prefill') {
      await this.#prefill(decision.slot, decision.type === 'prefill' ? decision.tokens : 0)
      for (const slot of this.#slots) slot.decodedSinceChunk = false
      this.#lastChunkMs = performance.now() - start
      this.#decodeMs = 0
    } else {
      await this.#decode(decision)
      this.#decodeMs += performance.now() - start
    }
  }

  /** Starts the answer unless it has started, and computes so many tokens of its prompt. */
  async #prefill(slot: Slot, tokens: number): Promise<void> {
    const executor = this.#executor
    this.#moveToEnd(slot)
    const active = isActive(slot) ? slot : await executor.start(slot, this.#runningEntries())
    // The answer may have been canceled during the start.
    if (tokens === 0 || !slot.pendingRead) return slot.resolveRead()
    await executor.prefill(active, tokens)
    // One chunk may queue behind another on the device, but a decode step must not wait for both.
    await executor.awaitChunks(this.#waiting.some((each) => each.isReady) ? 0 : 1)
  }

  async #decode(decision: Extract<Decision<Slot>, { type: 'decode' | 'verify' }>): Promise<void> {
    const slots = (decision.type === 'decode' ? decision.slots : [decision.slot]).filter(isActive)
    for (const slot of slots) slot.decodedSinceChunk = true
    const [first] = slots
    if (decision.type === 'decode') await this.#executor.decode(slots, decision.drafts)
    else if (first) await this.#executor.verify(first)
  }

  /**
   * Moves the sequences of finished answers to the prefix cache. A draft or a run ahead in a sequence is
   * removed when the sequence is truncated for the next prompt.
   */
  #cacheFinished(): void {
    for (const slot of this.#finished.splice(0)) {
      slot.releaseLogits()
      const { entry } = slot
      if (!entry) continue
      if (!this.#executor.canTruncate) entry.sequence.checkpoint()
      this.#prefixCache.insert(entry)
    }
  }

  /** Makes the running answers start again, or fails those that the error concerns. */
  #recover(thrown: InoriginError): void {
    // They belong to the decoder that failed.
    this.#idleRuns = []
    // The prefix cache is freed first. If it held anything, the answers start again.
    const retries = thrown.code === 'out_of_memory' && this.#prefixCache.clear()
    if (!retries) {
      this.#hasFailed = true
      for (const slot of this.#slots) {
        slot.lostDevices += 1
        if (thrown.code !== 'device_lost' || slot.lostDevices > MAX_LOST_DEVICES)
          this.#fail(slot, thrown)
      }
      for (const slot of this.#finished.splice(0)) slot.close()
      this.#prefixCache.clear()
    }
    for (const slot of this.#slots) slot.restart()
    if (retries) this.#executor.decoder.trim?.()
  }

  #fail(slot: Slot, error: InoriginError): void {
    slot.error = error
    slot.rejectRead(error)
    slot.close()
    this.#slots = this.#slots.filter((each) => each !== slot)
  }

  #decide(): Decision<Slot> {
    const { decoder, canTruncate } = this.#executor
    return decide({
      waiting: this.#waiting.map((slot) => this.#toWaitingSequence(slot)),
      sequences: this.#slots.length,
      maxBatchSize: decoder.maxBatchSize,
      chunkTokens: {
        alone: this.#executor.chunkTokens(true),
        shared: this.#executor.chunkTokens(false),
      },
      lastChunkMs: this.#lastChunkMs,
      decodeMs: this.#decodeMs,
      canTruncate,
      needsCheckpoints: decoder.checkpoints !== false,
    })
  }

  #toWaitingSequence(slot: Slot): WaitingSequence<Slot> {
    const { entry, pending, pendingRead, draft, request } = slot
    const reader = pendingRead?.reader ?? null
    const cachedTokens = entry
      ? 0
      : this.#prefixCache.hitLength(
          pending,
          request.partition,
          this.#runningEntries(),
          this.#executor.reuseLimits(pending),
        )
    const { maxRows = Infinity } = this.#executor.decoder
    return {
      slot,
      hasSequence: entry !== null,
      computedTokens: entry?.tokens.length ?? cachedTokens,
      pendingTokens: pending.length - cachedTokens,
      sharedTokens: entry ? new Map() : this.#sharedTokens(slot),
      checkpointLengths: slot.checkpointLengths,
      startsOnly: reader === null,
      // Without a drafter, the request differs from the one that was made for the draft.
      matchesDraft: Boolean(reader?.drafter) && draft !== null && draft.tokens[0] === pending[0],
      hasCertainDraft: maxRows > 1 && (reader?.drafter?.isCertain ?? false),
      decodedSinceChunk: slot.decodedSinceChunk,
    }
  }

  /** Returns the common prefix with each running prompt. It excludes the last token. */
  #sharedTokens({ pending, request }: Slot): Map<Slot, number> {
    const shared = new Map<Slot, number>()
    for (const other of this.#waiting) {
      if (!isActive(other) || other.request.partition !== request.partition) continue
      const length = commonPrefixLength(other.tokens, pending)
      shared.set(other, Math.min(length, pending.length - 1))
    }
    return shared
  }

  /** Returns the sequences of the running answers. */
  #runningEntries(): SequenceEntry[] {
    return this.#slots.flatMap(({ entry }) => entry ?? [])
  }
}

const aborted = (): InoriginError => new InoriginError('aborted', 'The request was canceled.')

const unloaded = (): InoriginError =>
  new InoriginError('unavailable', 'The model was unloaded during the request. Retry it.', {
    retryAfter: 1,
  })
