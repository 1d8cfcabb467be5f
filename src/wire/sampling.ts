/** Sampling fields of all styles, and their conversion to sampler settings. */
import * as v from 'valibot'
import type { Sampling } from '../types/index.ts'
import { atLeast, integer, isObject, optional, within } from './fields.ts'

const topP = within(0, 1)
const topK = atLeast(0)
const penalty = optional(within(-2, 2))

/** Accepts logit biases by token id. */
const biases = v.lazy((input): typeof bias | typeof noBias =>
  isObject(input) && Object.keys(input).every((key) => /^\d{1,9}$/.test(key)) ? bias : noBias,
)
const bias = v.record(v.string(), within(-100, 100))
const noBias = v.never('an object that maps token ids to biases')

export const chatSampling = {
  temperature: optional(within(0, 2)),
  top_p: optional(topP),
  top_k: optional(topK),
  min_p: optional(within(0, 1)),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: optional(within(0.01, 100)),
  logit_bias: optional(biases),
  seed: optional(integer),
}

export const messagesSampling = {
  ...chatSampling,
  top_p: optional(unlessUnset(topP)),
  top_k: optional(unlessUnset(topK)),
}

/** Accepts -1 as absent: clients of the Anthropic style send it for unset values. */
function unlessUnset<T extends v.GenericSchema>(rule: T) {
  const unset = v.pipe(
    v.literal(-1),
    v.transform(() => null),
  )
  return v.lazy((input): T | typeof unset => (input === -1 ? unset : rule))
}

type Fields = { [Name in keyof typeof chatSampling]?: v.InferOutput<(typeof chatSampling)[Name]> }

/** Converts the fields to sampler settings. `top_p: 0` keeps only the most probable token. */
export function samplingOf(body: Fields): Sampling {
  const greedy = body.top_p === 0
  return {
    temperature: body.temperature ?? undefined,
    topP: greedy ? undefined : (body.top_p ?? undefined),
    topK: greedy ? 1 : (body.top_k ?? undefined),
    minP: body.min_p ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined,
    repetitionPenalty: body.repetition_penalty ?? undefined,
    logitBias: body.logit_bias ?? undefined,
    seed: body.seed ?? undefined,
  }
}
