/** Schema of the fields of `POST /v1/chat/completions`, each checked on its own. */
import * as v from 'valibot'
import {
  anyObject,
  arrayOf,
  flag,
  integerAtLeast,
  nonEmptyString,
  object,
  oneOf,
  optional,
  rejected,
  rejectedField,
  stopSequences,
  string,
  stringOrParts,
  taggedUnion,
} from './fields.ts'
import { chatImage, rejectedImage } from './images.ts'
import { outputEffortField } from './reasoning.ts'
import { chatSampling } from './sampling.ts'
import {
  renamedField,
  renamedFormat,
  sharedFields,
  textPart,
  topLogprobs,
} from './shared-fields.ts'
import * as calls from './tools.ts'

const rejectedParts = { input_audio: rejected, file: rejected }

/** Content without images. Absent content is an empty text, and a refusal counts as text. */
export const contentSchema = optional(
  stringOrParts(
    taggedUnion('type', {
      text: textPart,
      refusal: object({ type: v.literal('refusal'), refusal: string }),
      image_url: rejectedImage,
      ...rejectedParts,
    }),
  ),
)
export const userContentSchema = optional(
  stringOrParts(
    taggedUnion('type', {
      text: textPart,
      image_url: chatImage,
      ...rejectedParts,
      refusal: rejected,
    }),
  ),
)

const toolCallSchema = object({
  id: string,
  type: optional(oneOf(['function'])),
  function: object({ name: nonEmptyString, arguments: calls.argumentsJson }),
})

const functionCallWord = oneOf(['auto', 'none'])
const namedFunction = object({ name: nonEmptyString })

const functionsFields = {
  functions: optional(arrayOf(object(calls.functionFields))),
  function_call: optional(
    v.lazy((input): typeof functionCallWord | typeof namedFunction =>
      typeof input === 'string' ? functionCallWord : namedFunction,
    ),
  ),
}

/** Deprecated form of a call in an assistant message. */
const functionCall = optional(object({ name: nonEmptyString, arguments: calls.argumentsJson }))

const messageSchema = taggedUnion('role', {
  system: object({ role: v.literal('system'), content: contentSchema }),
  developer: object({ role: v.literal('developer'), content: contentSchema }),
  user: object({ role: v.literal('user'), content: userContentSchema }),
  assistant: object({
    role: v.literal('assistant'),
    content: contentSchema,
    refusal: optional(string),
    // Servers use either name for reasoning, and clients send back what they received.
    reasoning_content: optional(string),
    reasoning: optional(string),
    tool_calls: optional(arrayOf(toolCallSchema)),
    function_call: functionCall,
    audio: rejectedField,
  }),
  tool: object({
    role: v.literal('tool'),
    content: contentSchema,
    tool_call_id: optional(string),
    name: optional(string),
  }),
  function: object({ role: v.literal('function'), name: nonEmptyString, content: contentSchema }),
})

const toolSchema = taggedUnion('type', {
  function: object({ type: string, function: object(calls.functionFields) }),
  custom: rejected,
})

const formatSchema = taggedUnion('type', {
  text: object({ type: v.literal('text') }),
  grammar: object({ type: v.literal('grammar'), grammar: nonEmptyString }),
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
  model: nonEmptyString,
  messages: v.pipe(arrayOf(messageSchema), v.minLength(1, 'an array with at least one message')),
  stream: optional(flag),
  stream_options: optional(object({ include_usage: optional(flag) })),
  max_completion_tokens: optional(integerAtLeast(1)),
  max_tokens: optional(integerAtLeast(1)),
  ...chatSampling,
  stop: optional(
    v.lazy((input): typeof nonEmptyString | typeof stopSequences =>
      typeof input === 'string' ? nonEmptyString : stopSequences,
    ),
  ),
  stop_sequences: renamedField('send stop instead'),
  system: renamedField('send a message of role system instead'),
  thread: rejectedField,
  tools: optional(arrayOf(toolSchema)),
  tool_choice: calls.toolChoiceSchema,
  response_format: optional(formatSchema),
  output_config: optional(
    object({ effort: outputEffortField, format: renamedFormat('send response_format instead') }),
  ),
  output_format: renamedFormat('send response_format instead'),
  logprobs: optional(flag),
  top_logprobs: topLogprobs,
  ...sharedFields,
  ...functionsFields,
  continue_final_message: optional(flag),
  add_generation_prompt: optional(flag),
})

export type ChatBody = v.InferOutput<typeof chatFields>
