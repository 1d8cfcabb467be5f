/**
 * Lets any number of answers share one decoder. Each iteration of the loop runs either one prefill
 * chunk of one prompt or one decode step of a batch. After each chunk, every decoding sequence gets
 * one step. If the chunk was slow, more steps follow until they took as long as the chunk.
 *
 * An answer (`answer.ts`) has a `Lane`, the handle to its state (`place.ts`). The state holds the
 * pending tokens and the request for the logits after them. Answers with one pending token decode
 * together in a batch.
 *
 * A prompt starts from the longest cached prefix (`prefix.ts`), or waits for a prompt that is
 * computing the same prefix. A single answer may verify draft tokens in its decode step
 * (`draft.ts`, `speculation.ts`). After a lost device, another decoder opens and every answer is
 * computed again.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder } from '../decoder.ts'
import { type Begun, confirm, fill, forget, step, venture } from './steps.ts'
import { allTokens, beginAnew, createPlace, deny, drop, grant, wishFor } from './place.ts'
import type { Place, Reader, Visit } from './place.ts'
import { createPrefixCache, type PrefixBudget, shared, type Track } from './prefix.ts'
import { createChunks } from './chunks.ts'
import { createTurns } from './turns.ts'
import { createSpeculation } from './speculation.ts'

/** Options of {@link createScheduler}. */
export interface SchedulerOptions {
  decoder: Decoder
  /** Frees the failed decoder and resolves to a new one. */
  reopen: () => Promise<Decoder>
  /** Limits of the prefix cache. */
  budget: PrefixBudget
}

/** Runs answers on one decoder. */
export interface Scheduler {
  /** Adds an answer. */
  enter(visit: Visit): Lane
  /** Rejects all answers with `unavailable`. The caller closes the decoder. */
  close(): Promise<void>
}

/** Handle of one answer. Its promises reject with `aborted` as soon as the signal aborts. */
export interface Lane {
  /** Resolves after `onStart` was called. */
  begin(): Promise<void>
  /**
   * Appends tokens to the prompt and the earlier tokens, and computes them. Resolves after `reader`
   * has read the logits of the next token.
   */
  advance(tokens: readonly number[], reader: Reader): Promise<void>
  /** Ends the answer. Its sequence moves to the prefix cache. */
  leave(): void
}

/** Number of lost devices that an answer survives. After more, its prompt may be the cause. */
const RECOVERIES = 2

/** Longest prefill chunk in milliseconds that calls for no additional decode steps. */
const UNNOTICED = 50

/**
 * Longest time in milliseconds of the decode steps after one chunk. A single stall of the device
 * must not delay the prompt as long.
 */
const MOST_OWED = 2_000

/** Creates a scheduler that runs while answers wait. */
export function createScheduler({ decoder: first, reopen, budget }: SchedulerOptions): Scheduler {
  const turns = createTurns()
  const cache = createPrefixCache(budget)
  const speculation = createSpeculation()
  const chunks = createChunks(first.maxChunkTokens)
  let decoder = first
  let places: Place[] = []
  /** Answers with a pending request, the one that waits longest first. */
  let waiting: Place[] = []
  /**
   * Answers whose decode step comes before the next chunk; `null` stands for all that are ready.
   */
  let due: Set<Place> | null = null
  /** Milliseconds of decode steps that come before the next chunk. */
  let owed = 0
  /** Resolves when the device has computed the last chunk. */
  let behind = Promise.resolve()
  let left: Place[] = []
  let failure: InoriginError | null = null
  /** `true` if a sequence can be cut to every length; `null` until the first chunk shows it. */
  let rewinds: boolean | null = null
  let running: Promise<void> | null = null
  let closed = false

  const wake = (): void => {
    running ??= run()
  }

  const run = async (): Promise<void> => {
    for (;;) {
      await turns.next()
      try {
        putAway()
        waiting = waiting.filter(({ wish }) => wish !== null)
        if (waiting.length === 0 || closed) break
        await turn()
      } catch (thrown) {
        await recover(InoriginError.from(thrown))
      }
    }
    running = null
  }

  const turn = async (): Promise<void> => {
    if (failure) await replace()
    const ready = waiting.filter(isReady)
    const round = (due ??= new Set(ready))
    const rushed = ready.filter((place) => round.has(place))
    const next = waiting.find((place) => !isReady(place) && !waits(place))
    const start = performance.now()
    if (next && rushed.length === 0 && (ready.length === 0 || owed <= 0)) {
      due = null
      await advance(next)
      const took = performance.now() - start
      owed = took < UNNOTICED ? 0 : Math.min(took, MOST_OWED)
      return
    }
    const group = (next && rushed.length > 0 ? rushed : ready).slice(0, decoder.maxBatchSize)
    for (const place of group) round.delete(place)
    await write(group as Begun[])
    owed -= performance.now() - start
  }

  /** Runs one decode step of a batch, or reads draft tokens that turned out right. */
  const write = async (group: readonly Begun[]): Promise<void> => {
    const unread: Begun[] = []
    for (const place of group)
      if (!place.ahead || !(await confirm(place, place.ahead))) unread.push(place)
    const [only] = unread
    // Drafts would delay other answers, and wrong ones have to be removed.
    if (only && rewinds && waiting.length === 1) await venture(decoder, only, speculation)
    else if (only) await step(decoder, unread)
  }

  const tracks = (): Track[] => places.flatMap(({ track }) => track ?? [])

  /** Returns `true` if a running prefill will soon save this prompt a chunk or more. */
  const waits = (place: Place): boolean => {
    if (place.track) return false
    const { partition } = place.visit
    const prompt = allTokens(place)
    const now = cache.reach(prompt, partition, tracks())
    return waiting.some((other) => {
      if (!other.track || isReady(other) || other.visit.partition !== partition) return false
      const common = Math.min(shared(allTokens(other), prompt), prompt.length - 1)
      const soon = rewinds ? common : Math.max(0, ...other.marks.filter((each) => each <= common))
      return soon > other.track.tokens.length && soon - now >= chunks.length(false)
    })
  }

  /** Runs the next prefill chunk of an answer and moves it to the end of the queue. */
  const advance = async (place: Place): Promise<void> => {
    waiting = [...waiting.filter((each) => each !== place), place]
    const fresh = place.track === null
    const begun = place.track ? (place as Begun) : await begin(place)
    if (place.wish?.reader == null) return grant(place)
    // Forced tokens differ from the draft.
    await forget(begun)
    const { track, pending, marks } = begun
    const from = track.tokens.length
    const most = Math.min(pending.length, chunks.length(places.length === 1))
    const mark =
      rewinds || decoder.checkpoints === false ? undefined : marks.find((each) => each > from)
    const count = mark === undefined ? most : Math.min(most, mark - from)
    const ends = count === pending.length
    const start = performance.now()
    await fill(begun, count)
    const { sequence } = track
    if (fresh && from === 0 && count > 1)
      rewinds ??= sequence.reusableLength(count - 1) === count - 1
    if (!rewinds && marks.includes(from + count)) sequence.checkpoint()
    if (ends) return
    const before = behind
    behind = chunks.took(count, start, decoder.synchronize())
    // One chunk may queue behind another on the device, but a decode step must not wait for both.
    await (waiting.some(isReady) ? behind : before)
  }

  const begin = async (place: Place): Promise<Begun> => {
    const { partition, onStart } = place.visit
    const prompt = allTokens(place)
    const found = await cache.take(prompt, partition, tracks())
    place.track = found ?? { sequence: decoder.open(), tokens: [], partition }
    const { length } = place.track.tokens
    place.pending.splice(0, length)
    if (!place.started) onStart({ cachedTokens: length })
    place.started = true
    return place as Begun
  }

  /**
   * Moves the sequences of finished answers to the prefix cache. A wrong draft in a sequence is
   * removed when the sequence is cut for the next prompt.
   */
  const putAway = (): void => {
    for (const place of left.splice(0)) {
      place.ahead?.logits.release()
      if (!place.track) continue
      if (!rewinds) place.track.sequence.checkpoint()
      cache.keep(place.track)
    }
  }

  const recover = async (thrown: InoriginError): Promise<void> => {
    // The prefix cache is freed first. If it held anything, the answers start again.
    if (thrown.code === 'out_of_memory' && cache.clear()) return places.forEach(beginAnew)
    failure = thrown
    const lost = thrown.code === 'device_lost'
    for (const place of places) {
      place.recoveries += 1
      if (!lost || place.recoveries > RECOVERIES) end(place, thrown)
    }
    places.forEach(beginAnew)
    left.splice(0).forEach(drop)
    cache.clear()
  }

  const replace = async (): Promise<void> => {
    decoder = await reopen()
    failure = null
  }

  const end = (place: Place, thrown: unknown): void => {
    place.ended = InoriginError.from(thrown)
    deny(place, thrown)
    drop(place)
    places = places.filter((each) => each !== place)
  }

  const enter: Scheduler['enter'] = (visit) => {
    const place = createPlace(visit)
    places.push(place)
    const abort = (): void => deny(place, aborted())
    visit.signal.addEventListener('abort', abort)

    const want = (reader: Reader | null): Promise<void> => {
      if (closed) end(place, unloaded())
      const refused = place.ended ?? (visit.signal.aborted ? aborted() : null)
      if (refused) return Promise.reject(refused)
      const wished = wishFor(place, reader)
      waiting = [...waiting.filter((each) => each !== place), place]
      wake()
      return wished
    }
    return {
      begin: () => (place.started ? Promise.resolve() : want(null)),
      advance: (tokens, reader) => {
        place.pending.push(...tokens)
        return want(reader)
      },
      leave: () => {
        visit.signal.removeEventListener('abort', abort)
        if (!places.includes(place)) return
        places = places.filter((each) => each !== place)
        left.push(place)
        wake()
      },
    }
  }

  const close = async (): Promise<void> => {
    closed = true
    await running
    for (const place of places) end(place, unloaded())
    left.splice(0).forEach(drop)
    cache.clear()
    turns.close()
  }
  return { enter, close }
}

/** Returns `true` if the answer has one token to compute. */
const isReady = ({ track, pending }: Place): boolean => track !== null && pending.length === 1

const aborted = (): InoriginError => new InoriginError('aborted', 'The request was cancelled.')

const unloaded = (): InoriginError =>
  new InoriginError('unavailable', 'The model was unloaded during the request. Retry it.', {
    retryAfter: 1,
  })
