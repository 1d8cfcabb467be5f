/** The shapes of the Open Responses specification: a response, a compaction, and the stream events. */
import { z } from 'zod'

const nullable = <T extends z.ZodType>(schema: T) => z.union([schema, z.null()])
const integer = z.number().int()

const logprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(integer) })

const part = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: z.array(z.unknown()),
    logprobs: z.array(logprob.extend({ top_logprobs: z.array(logprob) })).optional(),
  }),
  z.object({
    type: z.enum(['input_text', 'text', 'summary_text', 'reasoning_text']),
    text: z.string(),
  }),
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
  z.object({ type: z.literal('input_image'), image_url: nullable(z.string()), detail: z.string() }),
])

const status = z.enum(['in_progress', 'completed', 'incomplete'])

const item = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('message'),
    id: z.string(),
    status,
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.array(part),
  }),
  z.object({
    type: z.literal('function_call'),
    id: z.string(),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
    status,
  }),
  z.object({
    type: z.literal('function_call_output'),
    id: z.string(),
    call_id: z.string(),
    output: z.union([z.string(), z.array(part)]),
    status,
  }),
  z.object({
    type: z.literal('reasoning'),
    id: z.string(),
    summary: z.array(part),
    content: z.array(part).optional(),
    encrypted_content: z.string().optional(),
  }),
  z.object({ type: z.literal('compaction'), id: z.string(), encrypted_content: z.string() }),
])

const usage = z.object({
  input_tokens: integer,
  output_tokens: integer,
  total_tokens: integer,
  input_tokens_details: z.object({ cached_tokens: integer }),
  output_tokens_details: z.object({ reasoning_tokens: integer }),
})

const tool = z.object({
  type: z.literal('function'),
  name: z.string(),
  description: nullable(z.string()),
  parameters: nullable(z.record(z.string(), z.unknown())),
  strict: nullable(z.boolean()),
})

/** A function that may be named by a tool choice. */
const reference = z.object({ type: z.literal('function'), name: z.string().optional() })
const mode = z.enum(['none', 'auto', 'required'])

export const responseSchema = z.object({
  id: z.string(),
  object: z.literal('response'),
  created_at: integer,
  completed_at: nullable(integer),
  status: z.string(),
  incomplete_details: nullable(z.object({ reason: z.string() })),
  model: z.string(),
  previous_response_id: nullable(z.string()),
  instructions: nullable(z.string()),
  output: z.array(item),
  error: nullable(z.object({ code: z.string(), message: z.string() })),
  tools: z.array(tool),
  tool_choice: z.union([
    reference,
    mode,
    z.object({ type: z.literal('allowed_tools'), tools: z.array(reference), mode }),
  ]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.object({
    format: z.discriminatedUnion('type', [
      z.object({ type: z.enum(['text', 'json_object']) }),
      z.object({
        type: z.literal('json_schema'),
        name: z.string(),
        description: nullable(z.string()),
        strict: z.boolean(),
      }),
    ]),
    verbosity: z.enum(['low', 'medium', 'high']).optional(),
  }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: integer,
  temperature: z.number(),
  reasoning: nullable(
    z.object({
      effort: nullable(z.enum(['none', 'low', 'medium', 'high', 'xhigh'])),
      summary: nullable(z.enum(['concise', 'detailed', 'auto'])),
    }),
  ),
  usage: nullable(usage),
  max_output_tokens: nullable(integer),
  max_tool_calls: nullable(integer),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: nullable(z.string()),
  prompt_cache_key: nullable(z.string()),
})

export const compactionSchema = z.object({
  id: z.string(),
  object: z.literal('response.compaction'),
  created_at: integer,
  output: z.array(item),
  usage,
})

const event = <Type extends string, Fields extends z.ZodRawShape>(type: Type, fields: Fields) =>
  z.object({ type: z.literal(type), sequence_number: integer, ...fields })

const ofResponse = { response: responseSchema }
const ofItem = { output_index: integer, item }
const inItem = { item_id: z.string(), output_index: integer }
const inContent = { ...inItem, content_index: integer }
const inSummary = { ...inItem, summary_index: integer }

/** Error of a stream, whose code may be missing. */
const streamError = z.object({
  type: z.literal('error'),
  sequence_number: integer,
  error: z.object({
    type: z.string(),
    code: nullable(z.string()),
    message: z.string(),
    param: nullable(z.string()),
  }),
})

const events = z.union([
  event('response.created', ofResponse),
  event('response.queued', ofResponse),
  event('response.in_progress', ofResponse),
  event('response.completed', ofResponse),
  event('response.failed', ofResponse),
  event('response.incomplete', ofResponse),
  event('response.output_item.added', ofItem),
  event('response.output_item.done', ofItem),
  event('response.content_part.added', { ...inContent, part }),
  event('response.content_part.done', { ...inContent, part }),
  event('response.output_text.delta', { ...inContent, delta: z.string() }),
  event('response.output_text.done', { ...inContent, text: z.string() }),
  event('response.function_call_arguments.delta', { ...inItem, delta: z.string() }),
  event('response.function_call_arguments.done', { ...inItem, arguments: z.string() }),
  event('response.reasoning_summary_part.added', { ...inSummary, part }),
  event('response.reasoning_summary_part.done', { ...inSummary, part }),
  event('response.reasoning_summary_text.delta', { ...inSummary, delta: z.string() }),
  event('response.reasoning_summary_text.done', { ...inSummary, text: z.string() }),
  streamError,
])

/** A message of the WebSocket: an event, or the error of a request. */
export const messageSchema = z.union([
  events,
  z.object({
    type: z.literal('error'),
    status: integer,
    error: z.object({
      type: z.string(),
      code: z.string(),
      message: z.string(),
      param: nullable(z.string()),
    }),
  }),
])

export const eventSchema = events
export type ResponseMessage = z.infer<typeof messageSchema>
