/** One forward of the decoder for the places it serves, and the reading of what it gave. */
import type { Ask, Candidates, Decoder, Logits } from '../decoder/contract.ts'
import { deny, grant, type Place } from './place.ts'
import type { Track } from './prefix.ts'

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
  const asked = [ask(place)]
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
  const asked = places.map(ask)
  const logits = await decoder.step(entries)
  for (const place of places) took(place, 1)
  await read(places, asked, logits)
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
async function ask({ wish }: Place): Promise<Asked> {
  try {
    return { ask: (await wish?.reader?.ask()) ?? NOTHING }
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
