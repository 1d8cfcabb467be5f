/**
 * Fields that change an answer and that clients send whatever the path: what either style cannot
 * honour, its own or the other's, and what other servers added to both. Each is refused unless it
 * says what is so anyway.
 */
import * as v from 'valibot'
import {
  anyList,
  anyNumber,
  anyObject,
  atLeast,
  flag,
  functionCall,
  never,
  object,
  oneOf,
  optional,
  refused,
  string,
  tagged,
  toolChoice,
  tools,
  unsupported,
  within,
} from './fields.ts'

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
const OUTPUT_EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const

const penalty = optional(
  unsupported(within(-2, 2), (value) => value === 0, 'send 0 or leave it out'),
)
const single = optional(
  unsupported(atLeast(1), (count) => count === 1, 'ask again for another answer'),
)

/** What has another name or place in this style; an empty one asks for nothing. */
export function elsewhere(advice: string) {
  const isEmpty = (value: unknown) => value === '' || (Array.isArray(value) && value.length === 0)
  return optional(unsupported(v.unknown(), isEmpty, advice))
}

export const sharedFields = {
  tools,
  tool_choice: toolChoice,
  functions: tools,
  function_call: functionCall,
  mcp_servers: optional(unsupported(anyList, (servers) => servers.length === 0)),

  reasoning_effort: optional(
    unsupported(oneOf(EFFORTS), (effort) => effort === 'none', 'send none or leave it out'),
  ),
  thinking: optional(
    tagged('type', {
      disabled: object({ type: string }),
      enabled: never,
      adaptive: never,
      between_tools: never,
    }),
  ),
  output_config: optional(
    object({ effort: optional(unsupported(oneOf(OUTPUT_EFFORTS), () => false)), format: refused }),
  ),

  response_format: optional(
    tagged('type', { text: object({ type: string }), json_object: never, json_schema: never }),
  ),
  output_format: refused,
  guided_json: refused,
  guided_regex: refused,
  guided_grammar: refused,
  guided_choice: refused,

  n: single,
  best_of: single,
  logprobs: optional(unsupported(flag, (on) => !on)),
  top_logprobs: optional(unsupported(anyNumber, (most) => most === 0)),
  logit_bias: optional(unsupported(anyObject, (biases) => Object.keys(biases).length === 0)),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: optional(
    unsupported(anyNumber, (factor) => factor === 1, 'send 1 or leave it out'),
  ),
  min_p: optional(unsupported(within(0, 1), (share) => share === 0, 'send 0 or leave it out')),

  modalities: optional(
    unsupported(anyList, (kinds) => kinds.every((kind) => kind === 'text'), 'only text comes out'),
  ),
  audio: refused,
  prediction: refused,
  web_search_options: refused,

  container: refused,
  context_management: refused,
  compaction: refused,
}
