/** Schema of the fields of `POST /v1/chat/completions`, each checked on its own. */
import * as v from 'valibot'
import {
  arrayOf,
  flag,
  integerAtLeast,
  nonEmptyString,
  notEmpty,
  object,
  oneOf,
  optional,
  rejected,
  rejectedField,
  stopSequences,
  string,
  stringOr,
  stringOrParts,
  taggedUnion,
  tagString,
} from './fields.ts'
import { chatImage, rejectedImage } from './images.ts'
import { customToolFields, grammarFields } from './custom-tools.ts'
import { formatFields } from './formats.ts'
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
      refusal: { refusal: string },
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

const functionCall = object({ name: nonEmptyString, arguments: calls.argumentsText })

const toolCallSchema = calls.customOr(
  object({
    id: string,
    type: oneOf(['custom']),
    custom: object({ name: nonEmptyString, input: string }),
  }),
  object({ id: string, type: optional(oneOf(['function', 'custom'])), function: functionCall }),
)

const functionsFields = {
  functions: optional(arrayOf(object(calls.functionFields))),
  function_call: optional(stringOr(oneOf(['auto', 'none']), object({ name: nonEmptyString }))),
}

const messageSchema = taggedUnion('role', {
  system: { content: contentSchema },
  developer: { content: contentSchema },
  user: { content: userContentSchema },
  assistant: {
    content: contentSchema,
    refusal: optional(string),
    // Servers use either name for reasoning, and clients send back what they received.
    reasoning_content: optional(string),
    reasoning: optional(string),
    tool_calls: optional(arrayOf(toolCallSchema)),
    // The deprecated form of a call.
    function_call: optional(functionCall),
    audio: rejectedField,
  },
  tool: { content: contentSchema, tool_call_id: optional(string), name: optional(string) },
  function: { name: nonEmptyString, content: contentSchema },
})

const toolSchema = taggedUnion('type', {
  function: { function: object(calls.functionFields) },
  custom: {
    custom: object({
      ...customToolFields,
      format: optional(
        taggedUnion('type', { text: {}, grammar: { grammar: object(grammarFields) } }),
      ),
    }),
  },
})

export const chatFields = object({
  model: tagString,
  messages: v.pipe(arrayOf(messageSchema), notEmpty('an array with at least one message')),
  stream: optional(flag),
  stream_options: optional(object({ include_usage: optional(flag) })),
  max_completion_tokens: optional(integerAtLeast(1)),
  max_tokens: optional(integerAtLeast(1)),
  ...chatSampling,
  stop: optional(stringOr(nonEmptyString, stopSequences)),
  stop_sequences: renamedField('send stop instead'),
  system: renamedField('send a message of role system instead'),
  thread: rejectedField,
  tools: optional(arrayOf(toolSchema)),
  tool_choice: calls.toolChoiceSchema,
  output_config: optional(
    object({ effort: outputEffortField, format: renamedFormat('send response_format instead') }),
  ),
  output_format: renamedFormat('send response_format instead'),
  logprobs: optional(flag),
  top_logprobs: topLogprobs,
  ...sharedFields,
  ...formatFields,
  ...functionsFields,
  continue_final_message: optional(flag),
  add_generation_prompt: optional(flag),
})

export type ChatBody = v.InferOutput<typeof chatFields>
