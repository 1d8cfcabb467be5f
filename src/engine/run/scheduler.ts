/**
 * Lets any number of answers share one decoder. They join and leave between forwards; each turn is a
 * chunk of one prompt, or the next token of everybody who asked for it. Behind a chunk those who write
 * have one token each, and as much time as it took where that is long.
 *
 * An answer (`answer.ts`) has a lane, behind which is its place (`place.ts`): the tokens that it has
 * yet to give, and its wish for the scores behind them. A turn (`turn` below) takes from the places
 * that wait. Those that are ready, with one token to give, are stepped together; between two chunks of
 * a prompt each of them gets one step, so that nobody stands still while another one's prompt is
 * taken. A place begins with the longest beginning of its prompt that another one took before
 * (`prefix.ts`), or waits for one that is just taking it. Who is alone may have guessed tokens checked
 * beside its own (`draft.ts`, `speculation.ts`). When the device is lost another decoder is opened, and
 * every place takes its tokens anew.
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

export interface SchedulerOptions {
  decoder: Decoder
  /** Gives another decoder, after it freed the present one, which failed. */
  reopen: () => Promise<Decoder>
  /** Of conversations that nobody continues for now. */
  budget: PrefixBudget
}

export interface Scheduler {
  enter(visit: Visit): Lane
  /** Ends all lanes with `unavailable`; the decoder stays the caller's to close. */
  close(): Promise<void>
}

/** An answer's way through the decoder. All rejects with `aborted` as soon as its signal says so. */
export interface Lane {
  /** Resolves once `onStart` was told. */
  begin(): Promise<void>
  /** Takes these tokens behind all before, which is the prompt at first, and reads what follows. */
  advance(tokens: readonly number[], reader: Reader): Promise<void>
  /** What it took is kept for others. */
  leave(): void
}

/** Devices that are lost this often in one answer are lost to its prompt. */
const RECOVERIES = 2

/** Milliseconds without a token that nobody minds. */
const UNNOTICED = 50

/** Milliseconds; a device that was held up once does not hold up a prompt as long. */
const MOST_OWED = 2_000

export function createScheduler({ decoder: first, reopen, budget }: SchedulerOptions): Scheduler {
  const turns = createTurns()
  const cache = createPrefixCache(budget)
  const speculation = createSpeculation()
  const chunks = createChunks(first.chunk)
  let decoder = first
  let places: Place[] = []
  /** Those who wait for something, the one that waits longest first. */
  let waiting: Place[] = []
  /** Those whose step comes before the next chunk; `null`: all that are ready. */
  let due: Set<Place> | null = null
  /** Milliseconds of steps that come before the next chunk. */
  let owed = 0
  /** Resolves once the device is done with the last chunk. */
  let behind = Promise.resolve()
  let left: Place[] = []
  let failure: InoriginError | null = null
  /** Whether every length of a sequence can be had again; `null` until one was asked. */
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
    const group = (next && rushed.length > 0 ? rushed : ready).slice(0, decoder.batch)
    for (const place of group) round.delete(place)
    await write(group as Begun[])
    owed -= performance.now() - start
  }

  /** The next token of each. */
  const write = async (group: readonly Begun[]): Promise<void> => {
    const unread: Begun[] = []
    for (const place of group)
      if (!place.ahead || !(await confirm(place, place.ahead))) unread.push(place)
    const [only] = unread
    // Guesses would keep others waiting, and have to be taken back where they are wrong.
    if (only && rewinds && waiting.length === 1) await venture(decoder, only, speculation)
    else if (only) await step(decoder, unread)
  }

  const tracks = (): Track[] => places.flatMap(({ track }) => track ?? [])

  /** Whether a prompt that is being taken will soon spare this one a chunk or more. */
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

  /** The next chunk of a place, after which the others have their turn. */
  const advance = async (place: Place): Promise<void> => {
    waiting = [...waiting.filter((each) => each !== place), place]
    const fresh = place.track === null
    const begun = place.track ? (place as Begun) : await begin(place)
    if (place.wish?.reader == null) return grant(place)
    // What was written for the model is not what was guessed.
    await forget(begun)
    const { track, pending, marks } = begun
    const from = track.tokens.length
    const most = Math.min(pending.length, chunks.length(places.length === 1))
    const mark = rewinds || decoder.marks === false ? undefined : marks.find((each) => each > from)
    const count = mark === undefined ? most : Math.min(most, mark - from)
    const ends = count === pending.length
    const start = performance.now()
    await fill(begun, count)
    const { sequence } = track
    if (fresh && from === 0 && count > 1) rewinds ??= sequence.reach(count - 1) === count - 1
    if (!rewinds && marks.includes(from + count)) sequence.mark()
    if (ends) return
    const before = behind
    behind = chunks.took(count, start, decoder.settled())
    // One chunk may wait for another on the device, but no token behind both.
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

  /** A wrong guess that is still in a sequence goes when it is cut for the next prompt. */
  const putAway = (): void => {
    for (const place of left.splice(0)) {
      place.ahead?.logits.release()
      if (!place.track) continue
      if (!rewinds) place.track.sequence.mark()
      cache.keep(place.track)
    }
  }

  const recover = async (thrown: InoriginError): Promise<void> => {
    // What nobody uses is the first that memory can do without.
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

/** Whether one token is all it has to take. */
const isReady = ({ track, pending }: Place): boolean => track !== null && pending.length === 1

const aborted = (): InoriginError => new InoriginError('aborted', 'The request was cancelled.')

const unloaded = (): InoriginError =>
  new InoriginError('unavailable', 'The model was unloaded while it answered. Ask again.', {
    retryAfter: 1,
  })
