/** Schema of the fields of `POST /v1/chat/completions`, each checked on its own. */
import * as v from 'valibot'
import {
  anyObject,
  atLeast,
  filled,
  flag,
  listOf,
  never,
  object,
  oneOf,
  optional,
  refused,
  stops,
  string,
  tagged,
  textOr,
} from './fields.ts'
import { chatImage, noImage } from './images.ts'
import { outputEffort } from './reasoning.ts'
import { chatSampling } from './sampling.ts'
import { elsewhere, formatElsewhere, sharedFields, textPart, topLogprobs } from './shared.ts'
import * as calls from './tools.ts'

const elseRefused = { input_audio: never, file: never }

/** Content without images. Absent content is an empty text, and a refusal counts as text. */
export const contentRule = optional(
  textOr(
    tagged('type', {
      text: textPart,
      refusal: object({ type: v.literal('refusal'), refusal: string }),
      image_url: noImage,
      ...elseRefused,
    }),
  ),
)
export const shownRule = optional(
  textOr(tagged('type', { text: textPart, image_url: chatImage, ...elseRefused, refusal: never })),
)

const call = object({
  id: string,
  type: optional(oneOf(['function'])),
  function: object({ name: filled, arguments: calls.argumentsText }),
})

const functionCallWord = oneOf(['auto', 'none'])
const namedFunction = object({ name: filled })

const functionsFields = {
  functions: optional(listOf(object(calls.functionFields))),
  function_call: optional(
    v.lazy((input): typeof functionCallWord | typeof namedFunction =>
      typeof input === 'string' ? functionCallWord : namedFunction,
    ),
  ),
}

/** Deprecated form of a call in an assistant message. */
const functionCall = optional(object({ name: filled, arguments: calls.argumentsText }))

const messageRule = tagged('role', {
  system: object({ role: v.literal('system'), content: contentRule }),
  developer: object({ role: v.literal('developer'), content: contentRule }),
  user: object({ role: v.literal('user'), content: shownRule }),
  assistant: object({
    role: v.literal('assistant'),
    content: contentRule,
    refusal: optional(string),
    // Servers use either name for reasoning, and clients send back what they received.
    reasoning_content: optional(string),
    reasoning: optional(string),
    tool_calls: optional(listOf(call)),
    function_call: functionCall,
    audio: refused,
  }),
  tool: object({
    role: v.literal('tool'),
    content: contentRule,
    tool_call_id: optional(string),
    name: optional(string),
  }),
  function: object({ role: v.literal('function'), name: filled, content: contentRule }),
})

const tool = tagged('type', {
  function: object({ type: string, function: object(calls.functionFields) }),
  custom: never,
})

const format = tagged('type', {
  text: object({ type: v.literal('text') }),
  grammar: object({ type: v.literal('grammar'), grammar: filled }),
  json_object: object({ type: v.literal('json_object'), schema: optional(anyObject) }),
  json_schema: object({
    type: v.literal('json_schema'),
    json_schema: object({
      name: optional(string),
      description: optional(string),
      schema: optional(anyObject),
      strict: optional(flag),
    }),
  }),
})

export const chatFields = object({
  model: filled,
  messages: v.pipe(listOf(messageRule), v.minLength(1, 'an array with at least one message')),
  stream: optional(flag),
  stream_options: optional(object({ include_usage: optional(flag) })),
  max_completion_tokens: optional(atLeast(1)),
  max_tokens: optional(atLeast(1)),
  ...chatSampling,
  stop: optional(
    v.lazy((input): typeof filled | typeof stops => (typeof input === 'string' ? filled : stops)),
  ),
  stop_sequences: elsewhere('send stop instead'),
  system: elsewhere('send a message of role system instead'),
  thread: refused,
  tools: optional(listOf(tool)),
  tool_choice: calls.toolChoice,
  response_format: optional(format),
  output_config: optional(
    object({ effort: outputEffort, format: formatElsewhere('send response_format instead') }),
  ),
  output_format: formatElsewhere('send response_format instead'),
  logprobs: optional(flag),
  top_logprobs: topLogprobs,
  ...sharedFields,
  ...functionsFields,
  continue_final_message: optional(flag),
  add_generation_prompt: optional(flag),
})

export type ChatBody = v.InferOutput<typeof chatFields>
