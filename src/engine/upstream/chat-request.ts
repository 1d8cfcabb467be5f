/** Converts a generation request to the body of a chat completion. */
import type { OptionalField, Upstream } from '../../catalog/upstream-schema.ts'
import { InoriginError } from '../../error.ts'
import type {
  AnswerFormat,
  ChatMessage,
  GenerationRequest,
  Image,
  Sampling,
  ToolUse,
  UserMessage,
} from '../../types/index.ts'
import { toBase64 } from '../../values/bytes.ts'
import { parametersOf } from '../../values/custom-tools.ts'

/** Properties of the catalog entry that the body depends on. */
export interface UpstreamModel {
  maxOutputTokens: number
  /** `true` if the model writes reasoning. */
  thinks: boolean
}

/** Fields without which an answer is still one to the request. */
const LISTED_FIELDS: ReadonlySet<OptionalField> = new Set([
  'frequency_penalty',
  'min_p',
  'presence_penalty',
  'reasoning_effort',
  'repetition_penalty',
  'seed',
  'temperature',
  'top_k',
  'top_p',
])

/** Fields of a request that are refused, and their names in {@link GenerationRequest}. */
const REQUEST_FIELDS: Readonly<Record<string, string>> = {
  logprobs: 'logprobs',
  response_format: 'format',
  stop: 'stop',
  tools: 'tools',
}

/**
 * Returns the body of a streamed chat completion, and the fields of the request that have no effect.
 * Throws `invalid_request` that names a field which
 * the server does not honor and without which the answer would be another one.
 */
export function toChatCompletion(
  request: GenerationRequest,
  upstream: Upstream,
  { maxOutputTokens, thinks }: UpstreamModel,
) {
  const { sampling, stop, logprobs, format, tools, maxTokens = maxOutputTokens } = request
  if (sampling.logitBias) throw notHonored('logit_bias', 'its token ids are those of another model')
  if (format && !format.type.startsWith('json'))
    throw notHonored('format', 'servers differ in their grammars')
  const isContinued = request.responsePrefix !== undefined
  if (isContinued && !upstream.continues)
    throw notHonored('messages', 'it does not continue an assistant message')
  if (isContinued && format)
    throw notHonored('format', 'servers apply it to what follows a prefilled message')
  const optional: Partial<Record<OptionalField, unknown>> = {
    ...toSamplingFields(sampling),
    ...(stop.length > 0 && { stop }),
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
    ...(format && { response_format: toResponseFormat(format) }),
    ...(tools && tools.tools.length > 0 && toToolFields(tools)),
    ...(thinks && toReasoningFields(request.reasoningBudget)),
  }
  const dropped = upstream.unsupported.filter((field) => optional[field] !== undefined)
  const refused = dropped.find((field) => !LISTED_FIELDS.has(field))
  if (refused) throw notHonored(REQUEST_FIELDS[refused] ?? refused, 'its catalog entry says so')
  for (const field of dropped) delete optional[field]
  const messages = request.messages.map((message) => toMessage(message, thinks))
  if (isContinued) messages.push({ role: 'assistant', content: request.responsePrefix })
  const isReasoningIgnored = !thinks && request.reasoningBudget
  const names = dropped.map((field) => (field === 'reasoning_effort' ? 'reasoningBudget' : field))
  return {
    body: {
      model: upstream.model,
      messages,
      max_tokens: Math.min(maxTokens, maxOutputTokens),
      ...optional,
      ...(isContinued && CONTINUATION),
      stream: true,
      stream_options: { include_usage: true },
    },
    ignored: [
      ...names,
      ...(isReasoningIgnored ? ['reasoningBudget'] : []),
      ...(request.maxDraftTokens === undefined ? [] : ['speculative.n_max']),
      ...Object.keys(request.templateVariables ?? {}).map((name) => `templateVariables.${name}`),
      ...larkPaths(tools),
    ],
  }
}

/** Returns the paths of Lark grammars. Servers get them in the schema of the tool, as a description. */
const larkPaths = (use: ToolUse | undefined): string[] =>
  (use?.tools ?? []).flatMap(({ input }, index) =>
    input?.type === 'grammar' && input.syntax === 'lark'
      ? [`tools[${index}].input.definition`]
      : [],
  )

/** Fields that make vLLM, SGLang and inorigin continue the last message. */
const CONTINUATION = { continue_final_message: true, add_generation_prompt: false }

function notHonored(param: string, why: string): InoriginError {
  const what = `The upstream server does not honor \`${param}\`: ${why}.`
  return new InoriginError('invalid_request', `${what} Leave it out, or use a local model.`, {
    code: 'unsupported_parameter',
    param,
  })
}

const toSamplingFields = (sampling: Sampling) => ({
  temperature: sampling.temperature,
  top_p: sampling.topP,
  top_k: sampling.topK,
  min_p: sampling.minP,
  frequency_penalty: sampling.frequencyPenalty,
  presence_penalty: sampling.presencePenalty,
  repetition_penalty: sampling.repetitionPenalty,
  seed: sampling.seed,
})

function toResponseFormat(format: AnswerFormat): object {
  if (format.type !== 'json_schema') return { type: 'json_object' }
  return {
    type: 'json_schema',
    json_schema: { name: 'answer', schema: format.schema, strict: format.strict ?? false },
  }
}

function toToolFields({ tools, choice, only, parallel }: ToolUse) {
  const callable = tools.filter(({ name }) => only?.includes(name) ?? true)
  return {
    tools: callable.map((tool) => ({
      type: 'function',
      function: {
        name: tool.name,
        ...(tool.description !== undefined && { description: tool.description }),
        parameters: parametersOf(tool),
        ...(tool.strict && { strict: true }),
      },
    })),
    // It never names a tool, which llama-server would take for "auto". The list has only that tool.
    tool_choice: choice,
    ...(!parallel && { parallel_tool_calls: false }),
  }
}

/** Upper bounds in tokens of the budgets that the efforts stand for, the smallest first. */
const EFFORTS: ReadonlyArray<readonly [budgetTokens: number, effort: string]> = [
  [0, 'none'],
  [64, 'minimal'],
  [256, 'low'],
  [1_024, 'medium'],
  [4_096, 'high'],
]

const toReasoningFields = (budgetTokens: number | undefined) =>
  budgetTokens !== undefined && {
    reasoning_effort: EFFORTS.find(([most]) => budgetTokens <= most)?.[1] ?? 'xhigh',
  }

function toMessage(message: ChatMessage, thinks: boolean): object {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content }
    case 'user':
      return { role: 'user', content: toContent(message) }
    case 'tool':
      return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
    case 'assistant': {
      const { content, reasoning, toolCalls = [] } = message
      const calls = toolCalls.map(({ id, name, arguments: text }) => ({
        id,
        type: 'function',
        function: { name, arguments: text },
      }))
      return {
        role: 'assistant',
        content: content === '' && calls.length > 0 ? null : content,
        ...(thinks && reasoning !== undefined && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: calls }),
      }
    }
  }
}

/** Returns the text, or a list of its parts if there are images between them. */
function toContent({ content, images = [] }: UserMessage): string | object[] {
  if (images.length === 0) return content
  const parts: object[] = []
  let from = 0
  for (const image of images) {
    if (image.at > from) parts.push({ type: 'text', text: content.slice(from, image.at) })
    parts.push({ type: 'image_url', image_url: { url: toDataUrl(image) } })
    from = image.at
  }
  if (from < content.length) parts.push({ type: 'text', text: content.slice(from) })
  return parts
}

const toDataUrl = ({ mediaType, bytes }: Image): string =>
  `data:${mediaType};base64,${toBase64(bytes)}`
