/**
 * Schema of fields that clients send on several paths. Some are supported in all styles. The rest,
 * including extensions of other servers, are refused unless their value is the default.
 */
import * as v from 'valibot'
import {
  anyList,
  anyObject,
  atLeast,
  flag,
  isObject,
  object,
  oneOf,
  optional,
  refused,
  string,
  unsupported,
} from './fields.ts'
import { effort, thinking } from './reasoning.ts'

const single = optional(
  unsupported(atLeast(1), (count) => count === 1, 'send one request for each answer'),
)
const mildWord = unsupported(
  oneOf(['auto', 'none', 'required']),
  (word) => word !== 'required',
  'send tool_choice instead',
)
const named = unsupported(anyObject, () => false, 'send tool_choice instead')
/** Accepts only values that switch the feature off. */
const off = optional(
  unsupported(v.unknown(), (value) => value === false || value === 0 || value === ''),
)
const noList = optional(unsupported(anyList, (list) => list.length === 0))

/** Text part, in the form that all styles use. */
export const textPart = object({ type: v.literal('text'), text: string })

/** Refuses a field that has another name in this style, unless its value is empty. */
export function elsewhere(advice: string) {
  const isEmpty = (value: unknown) => value === '' || (Array.isArray(value) && value.length === 0)
  return optional(unsupported(v.unknown(), isEmpty, advice))
}

/** Returns `true` for context edits that keep everything. */
function keepsAll(management: unknown): boolean {
  const edits = isObject(management) ? (management['edits'] ?? []) : management
  return Array.isArray(edits) && edits.every((edit) => isObject(edit) && edit['keep'] === 'all')
}

export const sharedFields = {
  parallel_tool_calls: optional(flag),
  reasoning_effort: effort,
  thinking,

  functions: optional(unsupported(anyList, (list) => list.length === 0, 'send tools instead')),
  function_call: optional(
    v.lazy((input): typeof mildWord | typeof named =>
      typeof input === 'string' ? mildWord : named,
    ),
  ),
  mcp_servers: noList,
  fallbacks: noList,
  moderation: refused,

  guided_json: refused,
  guided_regex: refused,
  guided_grammar: refused,
  guided_choice: refused,
  structured_outputs: refused,
  grammar: off,
  json_schema: refused,
  chat_template_kwargs: optional(
    unsupported(
      anyObject,
      (values) => Object.keys(values).length === 0,
      'send reasoning_effort instead',
    ),
  ),
  enable_thinking: optional(unsupported(v.unknown(), () => false, 'send reasoning_effort instead')),
  min_tokens: off,
  ignore_eos: off,
  continue_final_message: off,
  add_generation_prompt: optional(unsupported(v.unknown(), (value) => value === true)),
  echo: off,
  suffix: off,
  typical_p: optional(unsupported(v.unknown(), (value) => value === 1)),
  mirostat: off,

  n: single,
  best_of: single,

  verbosity: optional(
    unsupported(
      oneOf(['low', 'medium', 'high']),
      (level) => level === 'medium',
      'ask for it in the prompt',
    ),
  ),
  modalities: optional(
    unsupported(anyList, (kinds) => kinds.every((kind) => kind === 'text'), 'models output text'),
  ),
  audio: refused,
  prediction: refused,
  web_search_options: refused,

  container: refused,
  context_management: optional(unsupported(v.unknown(), keepsAll)),
  compaction: refused,
}

/** Refuses logprobs in a style whose responses have no field for them. */
export const noLogprobs = {
  logprobs: optional(unsupported(flag, (on) => !on)),
  top_logprobs: optional(unsupported(v.number('a number'), (most) => most === 0)),
}

const MOST = 20

/** Number of alternatives to report with the logprobs of each token. */
export const topLogprobs = optional(v.pipe(atLeast(0), v.maxValue(MOST, `at most ${MOST}`)))

/** Refuses a format that this style takes in another field, unless it is plain text. */
export function formatElsewhere(advice: string) {
  const isText = (value: unknown) => isObject(value) && value['type'] === 'text'
  return optional(unsupported(v.unknown(), isText, advice))
}
