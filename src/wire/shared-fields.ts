/**
 * Schema of fields that clients send on several paths. Some are supported in all styles. The rest,
 * including extensions of other servers, are refused unless their value is the default.
 */
import * as v from 'valibot'
import {
  anyArray,
  anyObject,
  flag,
  integerAtLeast,
  numberWhere,
  oneOf,
  optional,
  rejectedField,
  rejectedWith,
  string,
  stringOr,
  unsupported,
} from './fields.ts'
import { effortField, thinkingField } from './reasoning.ts'
import { isObject } from '../values/objects.ts'

const onlyOne = unsupported(
  integerAtLeast(1),
  (count) => count === 1,
  'send one request for each answer',
)
const harmlessToolChoice = unsupported(
  oneOf(['auto', 'none', 'required']),
  (word) => word !== 'required',
  'send tool_choice instead',
)
const namedToolChoice = unsupported(anyObject, () => false, 'send tool_choice instead')
/** Accepts only values that switch the feature off. */
const off = unsupported(v.unknown(), (value) => value === false || value === 0 || value === '')
const emptyArray = unsupported(anyArray, (list) => list.length === 0)

/** Fields of a text part, in the form that all styles use. */
export const textPart = { text: string }

/** Refuses a field that has another name in this style, unless its value is empty. */
export function renamedField(advice: string) {
  const isEmpty = (value: unknown) => value === '' || (Array.isArray(value) && value.length === 0)
  return unsupported(v.unknown(), isEmpty, advice)
}

/** Returns `true` for context edits that keep everything. */
function keepsAllContext(management: unknown): boolean {
  const edits = isObject(management) ? (management['edits'] ?? []) : management
  return Array.isArray(edits) && edits.every((edit) => isObject(edit) && edit['keep'] === 'all')
}

export const sharedFields = {
  parallel_tool_calls: optional(flag),
  reasoning_effort: effortField,
  thinking: thinkingField,

  functions: unsupported(anyArray, (list) => list.length === 0, 'send tools instead'),
  function_call: optional(stringOr(harmlessToolChoice, namedToolChoice)),
  mcp_servers: emptyArray,
  fallbacks: emptyArray,
  moderation: rejectedField,

  guided_json: rejectedField,
  guided_regex: rejectedField,
  guided_grammar: rejectedField,
  guided_choice: rejectedField,
  structured_outputs: rejectedField,
  grammar: off,
  json_schema: rejectedField,
  chat_template_kwargs: unsupported(
    anyObject,
    (values) => Object.keys(values).length === 0,
    'send reasoning_effort instead',
  ),
  enable_thinking: optional(rejectedWith('send reasoning_effort instead')),
  min_tokens: off,
  ignore_eos: off,
  continue_final_message: off,
  add_generation_prompt: unsupported(v.unknown(), (value) => value === true),
  echo: off,
  suffix: off,
  typical_p: unsupported(v.unknown(), (value) => value === 1),
  mirostat: off,

  n: onlyOne,
  best_of: onlyOne,

  verbosity: unsupported(
    oneOf(['low', 'medium', 'high']),
    (level) => level === 'medium',
    'ask for it in the prompt',
  ),
  modalities: unsupported(
    anyArray,
    (kinds) => kinds.every((kind) => kind === 'text'),
    'models output text',
  ),
  audio: rejectedField,
  prediction: rejectedField,
  web_search_options: rejectedField,

  container: rejectedField,
  context_management: unsupported(v.unknown(), keepsAllContext),
  compaction: rejectedField,
}

/** Refuses logprobs in a style whose responses have no field for them. */
export const rejectedLogprobs = {
  logprobs: unsupported(flag, (on) => !on),
  top_logprobs: unsupported(
    numberWhere(() => true, 'a number'),
    (most) => most === 0,
  ),
}

const MAX_TOP_LOGPROBS = 20

/** Number of alternatives to report with the logprobs of each token. */
export const topLogprobs = optional(
  v.pipe(
    integerAtLeast(0),
    v.check((count) => count <= MAX_TOP_LOGPROBS, `at most ${MAX_TOP_LOGPROBS}`),
  ),
)

/** Refuses a format that this style takes in another field, unless it is plain text. */
export function renamedFormat(advice: string) {
  const isText = (value: unknown) => isObject(value) && value['type'] === 'text'
  return unsupported(v.unknown(), isText, advice)
}
