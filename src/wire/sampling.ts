/** Sampling fields of all styles, and their conversion to sampler settings. */
import * as v from 'valibot'
import type { Sampling } from '../types/index.ts'
import {
  integer,
  integerAtLeast,
  numberBetween,
  object,
  optional,
  refusedAs,
  replacedBy,
} from './fields.ts'
import { isObject } from '../values/objects.ts'

const topP = numberBetween(0, 1)
const topK = integerAtLeast(0)
const penalty = optional(numberBetween(-2, 2))

/** Accepts logit biases by token id. */
const biases = v.lazy((input) => {
  if (!isObject(input)) return notBias
  const ids = Object.keys(input)
  const other = ids.find((key) => !/^\d{1,9}$/.test(key))
  if (other === undefined) return object(Object.fromEntries(ids.map((id) => [id, bias])))
  // The message then ends with the key, such as `not "-1"`.
  return v.pipe(replacedBy(other as never), notTokenIds)
})
const bias = numberBetween(-100, 100)
const notBias = refusedAs('an object that maps token ids to biases')
const notTokenIds = v.check<never, string>(() => false, 'an object whose keys are token ids')

export const chatSampling = {
  temperature: optional(numberBetween(0, 2)),
  top_p: optional(topP),
  top_k: optional(topK),
  min_p: optional(numberBetween(0, 1)),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: optional(numberBetween(0.01, 100)),
  logit_bias: optional(biases),
  seed: optional(integer),
}

export const messagesSampling = {
  ...chatSampling,
  top_p: optional(exceptUnset(topP)),
  top_k: optional(exceptUnset(topK)),
}

/** Accepts -1 as absent: clients of the Anthropic style send it for unset values. */
function exceptUnset<T extends v.GenericSchema>(rule: T) {
  const unset = replacedBy(null)
  return v.lazy((input): T | typeof unset => (input === -1 ? unset : rule))
}

type Fields = { [Name in keyof typeof chatSampling]?: v.InferOutput<(typeof chatSampling)[Name]> }

/** Converts the fields to sampler settings. `top_p: 0` keeps only the most probable token. */
export function toSampling(body: Fields): Sampling {
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
