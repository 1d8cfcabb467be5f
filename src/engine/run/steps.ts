/** One forward of the decoder for the places it serves, and the reading of what it gave. */
import type { Ask, Candidates, Decoder, Logits } from '../decoder.ts'
import { type Ahead, deny, grant, type Place } from './place.ts'
import type { Track } from './prefix.ts'
import type { Speculation } from './speculation.ts'

/** A place that has begun. */
export interface Begun extends Place {
  track: Track
}

/** Takes that many of the pending tokens, a chunk at most; the last of them are read. */
export async function fill(place: Begun, count: number): Promise<void> {
  const { track, pending } = place
  const tokens = pending.slice(0, count)
  if (count < pending.length) {
    await track.sequence.extend(tokens)
    took(place, count)
    return
  }
  const asked = [ask(place, [])]
  const logits = await track.sequence.predict(tokens)
  took(place, count)
  await read([place], asked, logits)
}

/** Takes the one pending token of each, and reads. */
export async function step(decoder: Decoder, places: readonly Begun[]): Promise<void> {
  const entries = places.map(({ track, pending }) => ({
    sequence: track.sequence,
    token: pending[0] as number,
  }))
  const asked = places.map((place) => ask(place, []))
  const logits = await decoder.step(entries)
  for (const place of places) took(place, 1)
  await read(places, asked, logits)
}

/**
 * Takes the one pending token and, where it pays, others that are guessed to follow it. Reads, and
 * keeps the scores behind each guess for when it turns out right.
 */
export async function venture(
  decoder: Decoder,
  place: Begun,
  speculation: Speculation,
): Promise<void> {
  const { drafter = null, room = 0 } = place.wish?.reader ?? {}
  const guessed = drafter?.guess(speculation.count(drafter.luck, room)) ?? []
  const start = performance.now()
  if (guessed.length === 0) {
    await step(decoder, [place])
    return speculation.took(0, performance.now() - start)
  }
  const tokens = [...place.pending, ...guessed]
  const asked = tokens.map((_, index) => ask(place, guessed.slice(0, index)))
  const logits = await place.track.sequence.predict(tokens, tokens.length)
  took(place, 1)
  place.ahead = { tokens: guessed, candidates: [], logits }
  const asks = await Promise.all(asked)
  place.ahead.candidates = await logits.top(asks.map((each) => each.ask))
  speculation.took(guessed.length, performance.now() - start)
  const [first] = asks
  if (first?.failure === undefined) await readAhead(place, place.ahead)
  else deny(place, first.failure)
}

/** Whether the pending token is as guessed: then reads what is known to follow. Else the guess goes. */
export async function confirm(place: Begun, ahead: Ahead): Promise<boolean> {
  const [next] = ahead.tokens
  // Without a drafter something else is asked than was when it was guessed.
  if (!place.wish?.reader?.drafter || place.pending[0] !== next) {
    await forget(place)
    return false
  }
  ahead.tokens.shift()
  took(place, 1)
  await readAhead(place, ahead)
  return true
}

/** Back to what is certain, before anything else is taken. */
export async function forget(place: Begun): Promise<void> {
  const guessed = place.ahead?.tokens.length ?? 0
  place.ahead?.logits.release()
  place.ahead = null
  if (guessed > 0) await place.track.sequence.cut(place.track.tokens.length)
}

function readAhead(place: Begun, { candidates, logits, tokens }: Ahead): Promise<void> {
  const index = candidates.length - 1 - tokens.length
  return readRow(place, logits, index, candidates[index] as Candidates)
}

function took({ track, pending }: Begun, count: number): void {
  track.tokens.push(...pending.splice(0, count))
}

interface Asked {
  ask: Ask
  /** Why there is nothing to ask. */
  failure?: unknown
}

const NOTHING: Ask = { count: 1, temperature: 1 }

/** Begun before the scores are there, so that a mask is computed beside them. */
async function ask({ wish }: Place, guessed: readonly number[]): Promise<Asked> {
  try {
    return { ask: (await wish?.reader?.ask(guessed)) ?? NOTHING }
  } catch (failure) {
    return { ask: NOTHING, failure }
  }
}

/** What a reader throws is its own affair; what the decoder throws is everybody's. */
async function read(
  places: readonly Place[],
  asked: readonly Promise<Asked>[],
  logits: Logits,
): Promise<void> {
  try {
    const asks = await Promise.all(asked)
    const found = await logits.top(asks.map((each) => each.ask))
    for (const [index, place] of places.entries()) {
      const { failure } = asks[index] as Asked
      if (failure !== undefined) deny(place, failure)
      else await readRow(place, logits, index, found[index] as Candidates)
    }
  } finally {
    logits.release()
  }
}

async function readRow(
  place: Place,
  logits: Logits,
  index: number,
  candidates: Candidates,
): Promise<void> {
  let broken: { thrown: unknown } | null = null
  const row = async (): Promise<Float32Array> => {
    try {
      return await logits.row(index)
    } catch (thrown) {
      broken = { thrown }
      throw thrown
    }
  }
  try {
    await place.wish?.reader?.read({ candidates, row })
    grant(place)
  } catch (thrown) {
    if (broken) throw thrown
    deny(place, thrown)
  }
}
