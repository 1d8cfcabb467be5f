/** Schema of `POST /v1/responses`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { GenerationRequest } from '../types/index.ts'
import {
  anyObject,
  atLeast,
  consistent,
  filled,
  flag,
  listOf,
  never,
  not,
  object,
  oneOf,
  optional,
  refused,
  string,
  tagged,
  unsupported,
} from './fields.ts'
import type { Places } from './places.ts'
import { budgetFault, effort, outputEffort, reasoningOf } from './reasoning.ts'
import type { Reasoning } from './reasoning.ts'
import { chatSampling, samplingOf } from './sampling.ts'
import { elsewhere, formatElsewhere, sharedFields, topLogprobs } from './shared.ts'
import { inputRule, turnsOf } from './responses-input.ts'
import type { Placed } from './responses-input.ts'
import * as calls from './tools.ts'

/** Value of `include` that asks for logprobs, without a number of alternatives. */
const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Value of `include` that asks for reasoning in a form that can be sent back. */
const INCLUDE_SEALS = 'reasoning.encrypted_content'

const ref = object({ type: optional(oneOf(['function'])), name: filled })
const choice = tagged('type', {
  function: object({ type: v.literal('function'), name: filled }),
  allowed_tools: object({
    type: v.literal('allowed_tools'),
    mode: oneOf(['auto', 'required']),
    tools: listOf(ref),
  }),
  custom: never,
})

const functionTool = object({ type: oneOf(['function']), ...calls.functionFields })

/** Accepts functions. Tools of other types run on the vendor's servers. */
const tool = v.lazy((input): typeof functionTool | typeof never => {
  const type = (input as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' && type !== 'function' ? never : functionTool
})

const format = tagged('type', {
  text: object({ type: v.literal('text') }),
  json_object: object({ type: v.literal('json_object') }),
  json_schema: object({
    type: v.literal('json_schema'),
    name: optional(string),
    description: optional(string),
    schema: anyObject,
    strict: optional(flag),
  }),
})

const summary = optional(oneOf(['auto', 'concise', 'detailed']))

const noConversation = 'send previous_response_id, or the whole conversation as input'

const table = object({
  model: filled,
  input: inputRule,
  instructions: optional(string),
  messages: elsewhere('send input instead'),
  system: elsewhere('send instructions instead'),
  stream: optional(flag),
  max_output_tokens: optional(atLeast(1)),
  max_tokens: elsewhere('send max_output_tokens instead'),
  max_completion_tokens: elsewhere('send max_output_tokens instead'),
  ...chatSampling,
  stop: elsewhere('use /v1/chat/completions, which supports it'),
  stop_sequences: elsewhere('use /v1/chat/completions, which supports stop'),
  tools: optional(listOf(tool)),
  tool_choice: calls.wordOr(choice),
  text: optional(object({ format: optional(format), verbosity: sharedFields.verbosity })),
  response_format: formatElsewhere('send text.format instead'),
  output_format: formatElsewhere('send text.format instead'),
  output_config: optional(
    object({ effort: outputEffort, format: formatElsewhere('send text.format instead') }),
  ),
  reasoning: optional(
    object({
      effort,
      summary,
      generate_summary: summary,
      mode: optional(unsupported(string, (mode) => mode === 'standard')),
      context: optional(unsupported(string, (turns) => turns === 'auto')),
    }),
  ),
  include: optional(listOf(string)),
  top_logprobs: topLogprobs,
  previous_response_id: optional(filled),
  conversation: optional(not(noConversation)),
  store: optional(flag),
  metadata: optional(anyObject),
  prompt: refused,
  background: optional(unsupported(flag, (on) => !on)),
  truncation: optional(
    unsupported(oneOf(['disabled', 'auto']), (way) => way === 'disabled', 'shorten the input'),
  ),
  thread: refused,
  ...sharedFields,
})

/** Schema of the body. */
export const responsesBody = consistent(table, ({ thinking, max_output_tokens }) =>
  budgetFault(thinking, max_output_tokens),
)

export type ResponsesBody = v.InferOutput<typeof table>

/** Converts the body to a generation request. `items` are the resolved input. */
export function responsesRequest(body: ResponsesBody, items: readonly Placed[]): GenerationRequest {
  const { instructions, text } = body
  const turns = turnsOf(items)
  return {
    model: body.model,
    messages: calls.nameResults(
      instructions ? [{ role: 'system', content: instructions }, ...turns] : turns,
    ),
    maxTokens: body.max_output_tokens ?? undefined,
    sampling: samplingOf(body),
    stop: [],
    tools: calls.toolUse(
      (body.tools ?? []).map(calls.toolOf),
      choiceOf(body.tool_choice),
      calls.mayCallSeveral({ parallel_tool_calls: body.parallel_tool_calls }),
    ),
    format: formatOf(text?.format),
    reasoningBudget: responsesReasoning(body).budget,
    logprobs: logprobsOf(body),
  }
}

/** Returns the reasoning settings. This style has the field `reasoning.effort` of its own. */
export function responsesReasoning(body: ResponsesBody): Reasoning {
  const own = body.reasoning?.effort
  if (!own) return reasoningOf(body)
  const { reasoning_effort: general } = body
  const asked = reasoningOf({ ...body, reasoning_effort: own })
  const named = (name: string) => (name === 'reasoning_effort' ? 'reasoning.effort' : name)
  return {
    ...asked,
    fields: asked.fields.map(named),
    ignored: [
      ...asked.ignored.map(named),
      ...(general && general !== own ? ['reasoning_effort'] : []),
    ],
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function responsesPlaces(body: ResponsesBody): Places {
  return {
    rename: [
      [/^format\b/, 'text.format'],
      [/^messages\b/, 'input'],
    ],
    reasoning: responsesReasoning(body).fields,
  }
}

/** Returns `true` if the client intends to send reasoning back. */
export function wantsSeals({ include }: ResponsesBody): boolean {
  return include?.includes(INCLUDE_SEALS) ?? false
}

/** Returns the fields without effect, such as `include` with a value that is not supported. */
export function ignoredByResponses(body: ResponsesBody): string[] {
  const isHad = (name: string): boolean => name === INCLUDE_LOGPROBS || name === INCLUDE_SEALS
  const included = (body.include?.every(isHad) ?? true) ? [] : ['include']
  return [...included, ...responsesReasoning(body).ignored]
}

/** Returns the number of alternatives for each token, or `undefined` without logprobs. */
export function logprobsOf({ include, top_logprobs: most }: ResponsesBody): number | undefined {
  return most || include?.includes(INCLUDE_LOGPROBS) ? (most ?? 0) : undefined
}

function choiceOf(given: ResponsesBody['tool_choice']): calls.Choice {
  if (given === null || given === undefined) return { choice: 'auto' }
  if (typeof given === 'string') return { choice: given }
  if (given.type === 'function') return { choice: 'required', only: [given.name] }
  return { choice: given.mode, only: given.tools.map(({ name }) => name) }
}

function formatOf(given: v.InferOutput<typeof format> | null | undefined) {
  if (!given || given.type === 'text') return undefined
  if (given.type === 'json_object') return { type: 'json_object' } as const
  return { type: 'json_schema', schema: given.schema } as const
}
