/** How the next token is chosen: the fields of both styles, and what they ask for. */
import * as v from 'valibot'
import type { Sampling } from '../types/index.ts'
import { atLeast, integer, optional, within } from './fields.ts'

const topP = within(0, 1)
const topK = atLeast(0)

export const chatSampling = {
  temperature: optional(within(0, 2)),
  top_p: optional(topP),
  top_k: optional(topK),
  seed: optional(integer),
}

export const messagesSampling = {
  ...chatSampling,
  top_p: optional(unlessUnset(topP)),
  top_k: optional(unlessUnset(topK)),
}

/** Clients of the messages style say -1 where their user said nothing. */
function unlessUnset<T extends v.GenericSchema>(rule: T) {
  const unset = v.pipe(
    v.literal(-1),
    v.transform(() => null),
  )
  return v.lazy((input): T | typeof unset => (input === -1 ? unset : rule))
}

/** The same, free of a style. The smallest nucleus, `top_p: 0`, is the most probable token alone. */
export function samplingOf(body: {
  temperature?: number | null | undefined
  top_p?: number | null | undefined
  top_k?: number | null | undefined
  seed?: number | null | undefined
}): Sampling {
  const greedy = body.top_p === 0
  return {
    temperature: body.temperature ?? undefined,
    topP: greedy ? undefined : (body.top_p ?? undefined),
    topK: greedy ? 1 : (body.top_k ?? undefined),
    seed: body.seed ?? undefined,
  }
}
