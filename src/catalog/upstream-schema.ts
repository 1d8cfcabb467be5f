/** Defines the schema of an upstream implementation: another server that answers for a tag. */
import * as v from 'valibot'
import { nonEmptyArray, optionalFlag, textSchema } from './value-schemas.ts'

/** Conditions under which a request is answered upstream. */
export const CONDITIONS = [
  'never',
  'unavailable',
  'not-loaded',
  'busy',
  'too-long',
  'interrupted',
  'always',
] as const

/** Fields of a chat completion that not every server honors. */
const OPTIONAL_FIELDS = [
  'frequency_penalty',
  'logprobs',
  'min_p',
  'presence_penalty',
  'reasoning_effort',
  'repetition_penalty',
  'response_format',
  'seed',
  'stop',
  'temperature',
  'tools',
  'top_k',
  'top_p',
] as const

const conditionSchema = v.picklist(CONDITIONS)

/** Server that speaks chat completions and answers in place of this device. */
export const upstreamSchema = v.strictObject({
  /** Id that is unique within the tag, such as `server`. */
  id: textSchema,
  /** Marks an implementation on another server. */
  engine: v.literal('upstream'),
  /**
   * Base URL of the server's API, such as `/llm/v1`, relative to the catalog's own URL. Requests go
   * to `chat/completions` or `embeddings` below it.
   */
  url: textSchema,
  /** Name of the model on that server. */
  model: textSchema,
  /**
   * Conditions under which it answers, one or a list. Default: `unavailable`, if no implementation
   * can run on this device or the device failed. `not-loaded`: while the local model is not in
   * memory; `busy`: its queue is full; `too-long`: the prompt does not fit; `interrupted`: this
   * device cannot finish an answer that it began, so the server continues it; `always`; `never`.
   */
  when: v.optional(v.union([conditionSchema, nonEmptyArray(conditionSchema)])),
  /** `true` to send the API key of a request to the server. Default: `false`. */
  forwardAuthorization: optionalFlag,
  /**
   * `true` if the server accepts `continue_final_message`, which prefilled answers and the
   * condition `interrupted` need. Default: `false`, which refuses them.
   */
  continues: optionalFlag,
  /** Fields that the server does not honor. Requests that need one are refused. Default: none. */
  unsupported: v.optional(v.array(v.picklist(OPTIONAL_FIELDS))),
})

export type WrittenUpstream = v.InferOutput<typeof upstreamSchema>
export type Condition = (typeof CONDITIONS)[number]
export type OptionalField = (typeof OPTIONAL_FIELDS)[number]

/** Upstream implementation of a validated catalog. */
export interface Upstream {
  id: string
  /** Absolute base URL without a trailing slash. */
  url: string
  /** Name of the model on that server. */
  model: string
  when: readonly Condition[]
  forwardAuthorization: boolean
  continues: boolean
  unsupported: readonly OptionalField[]
  /** Reason why the app does not allow requests to that URL; `null` if it does. */
  refusal: string | null
}
