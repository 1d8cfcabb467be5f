/** Runs one forward pass of the decoder for a batch and lets the answers read its logits. */
import type { CandidateRequest, Candidates, Decoder, Logits } from '../decoder.ts'
import { type Ahead, deny, grant, type Place } from './place.ts'
import type { Track } from './prefix.ts'
import type { Speculation } from './speculation.ts'

/** An answer whose prefill has started. */
export interface Begun extends Place {
  track: Track
}

/**
 * Computes the first `count` pending tokens, at most a chunk. Reads the logits if no tokens are
 * left.
 */
export async function fill(place: Begun, count: number): Promise<void> {
  const { track, pending } = place
  const tokens = pending.slice(0, count)
  if (count < pending.length) {
    await track.sequence.extend(tokens)
    took(place, count)
    return
  }
  const asked = [ask(place, [])]
  const logits = await track.sequence.forward(tokens)
  took(place, count)
  await read([place], asked, logits)
}

/** Runs a decode step of the one pending token of each answer, and reads the logits. */
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
 * Runs a decode step of the one pending token, with draft tokens after it if they pay off. Reads
 * the logits of the pending token. Keeps the logits of the drafts until the answer confirms them.
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
  const logits = await place.track.sequence.forward(tokens, tokens.length)
  took(place, 1)
  place.ahead = { tokens: guessed, candidates: [], logits }
  const asks = await Promise.all(asked)
  place.ahead.candidates = await logits.top(asks.map((each) => each.ask))
  speculation.took(guessed.length, performance.now() - start)
  const [first] = asks
  if (first?.failure === undefined) await readAhead(place, place.ahead)
  else deny(place, first.failure)
}

/**
 * Compares the pending token with the draft. If they match, reads the logits after it and resolves
 * to `true`. Otherwise removes the draft.
 */
export async function confirm(place: Begun, ahead: Ahead): Promise<boolean> {
  const [next] = ahead.tokens
  // Without a drafter, the request differs from the one that was made for the draft.
  if (!place.wish?.reader?.drafter || place.pending[0] !== next) {
    await forget(place)
    return false
  }
  ahead.tokens.shift()
  took(place, 1)
  await readAhead(place, ahead)
  return true
}

/** Removes the draft from the sequence. */
export async function forget(place: Begun): Promise<void> {
  const guessed = place.ahead?.tokens.length ?? 0
  place.ahead?.logits.release()
  place.ahead = null
  if (guessed > 0) await place.track.sequence.truncate(place.track.tokens.length)
}

/** Lets the answer read the stored logits after its last accepted draft token. */
function readAhead(place: Begun, { candidates, logits, tokens }: Ahead): Promise<void> {
  const index = candidates.length - 1 - tokens.length
  return readRow(place, logits, index, candidates[index] as Candidates)
}

/** Moves the first `count` pending tokens to the track. */
function took({ track, pending }: Begun, count: number): void {
  track.tokens.push(...pending.splice(0, count))
}

/** Result of a reader's `ask`. */
interface Asked {
  ask: CandidateRequest
  /** Error of the reader's `ask`. */
  failure?: unknown
}

const NOTHING: CandidateRequest = { count: 1, temperature: 1 }

/**
 * Requests the candidates before the logits are computed, so that a token mask is computed in
 * parallel.
 */
async function ask({ wish }: Place, guessed: readonly number[]): Promise<Asked> {
  try {
    return { ask: (await wish?.reader?.ask(guessed)) ?? NOTHING }
  } catch (failure) {
    return { ask: NOTHING, failure }
  }
}

/**
 * Lets each answer read its row of logits. An error of a reader fails its own answer only. An error
 * of the decoder is thrown and concerns all answers.
 */
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

/** Lets one answer read its row of logits, and settles its request. */
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
