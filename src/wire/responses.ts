/** Schema of `POST /v1/responses`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage, ToolCall } from '../types/index.ts'
import { withToolNames } from '../values/custom-tools.ts'
import { isObject } from '../values/objects.ts'
import type { ParsedBody } from './body.ts'
import { readSummary } from './compaction.ts'
import * as f from './fields.ts'
import { grammarFormats, toFormat } from './formats.ts'
import { inputImage, rejectedImage, toImage, toUserMessage, type UserContent } from './images.ts'
import {
  flattenTools,
  responsesToolChoice,
  type ResponsesTool,
  toFullName,
  toolsSchema,
  toResponsesToolUse,
} from './responses-tools.ts'
import type { ParsedRequest } from './route.ts'
import * as shared from './shared-fields.ts'
import * as calls from './tools.ts'

const part = f.object({ type: f.string, text: f.string })
const parts = {
  input_text: shared.textPart,
  output_text: shared.textPart,
  text: shared.textPart,
  refusal: { refusal: f.string },
  input_file: f.rejected,
  input_audio: f.rejected,
}
const contentSchema = f.stringOrParts({ ...parts, input_image: rejectedImage })
const userContentSchema = f.stringOrParts({ ...parts, input_image: inputImage })
/** Fields that clients send back from earlier responses. They have no effect. */
const ignoredItemFields = { id: f.optional(f.string), status: f.optional(f.string) }

const messageFields = {
  type: f.optional(f.oneOf(['message'])),
  content: contentSchema,
  ...ignoredItemFields,
}

const messageSchema = f.taggedUnion('role', {
  user: { ...messageFields, content: userContentSchema },
  assistant: messageFields,
  system: messageFields,
  developer: messageFields,
})

const reasoningTextsSchema = f.optional(f.arrayOf(part))

const callFields = {
  call_id: f.nonEmptyString,
  name: f.nonEmptyString,
  namespace: f.optional(f.string),
}
const callOutput = { call_id: f.nonEmptyString, output: userContentSchema, ...ignoredItemFields }
/** A call of a tool that the client runs. Calls of some types have their id as `id` only. */
const clientCall = { call_id: f.optional(f.nonEmptyString), ...ignoredItemFields }
const clientOutput = { ...clientCall, output: f.optional(v.unknown()) }
const loadedTools = { tools: toolsSchema, ...ignoredItemFields }

const item = f.taggedUnion('type', {
  message: messageSchema,
  function_call: { ...callFields, arguments: calls.argumentsText, ...ignoredItemFields },
  function_call_output: callOutput,
  custom_tool_call: { ...callFields, input: f.string, ...ignoredItemFields },
  custom_tool_call_output: callOutput,
  local_shell_call: { ...clientCall, action: f.anyObject },
  local_shell_call_output: clientOutput,
  shell_call: { ...clientCall, action: f.anyObject },
  shell_call_output: clientOutput,
  apply_patch_call: { ...clientCall, operation: f.anyObject },
  apply_patch_call_output: clientOutput,
  reasoning: {
    summary: reasoningTextsSchema,
    content: reasoningTextsSchema,
    encrypted_content: f.optional(f.string),
    ...ignoredItemFields,
  },
  compaction: { encrypted_content: f.string, ...ignoredItemFields },
  compaction_trigger: ignoredItemFields,
  additional_tools: loadedTools,
  tool_search_output: loadedTools,
  item_reference: { id: f.nonEmptyString },
})

const KNOWN_TYPES: ReadonlySet<unknown> = new Set<KnownItem['type']>([
  undefined,
  null,
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'reasoning',
  'compaction',
  'compaction_trigger',
  'additional_tools',
  'tool_search_output',
  'item_reference',
])

/**
 * Accepts any item. An item without a type is a message. One of a type that is not known here, such
 * as the call of a tool of a vendor, is left out of the prompt and named.
 */
const anyItem = f.when(
  (input) => isObject(input) && (input['type'] ?? null) === null,
  messageSchema,
  f.typeOr((type) => typeof type === 'string' && !KNOWN_TYPES.has(type), f.anyObject, item),
)

export const itemsSchema = v.array(anyItem, 'a string or an array of items')

/**
 * Largest number of items in an input. Each gets an id and is sent on twice, for the completion and
 * for storage. A conversation with that many items exceeds every context.
 */
const MAX_INPUT_ITEMS = 20_000

const inputSchema = f.stringOr(
  f.string,
  v.pipe(
    f.withMaxLength(MAX_INPUT_ITEMS, 'items', itemsSchema),
    f.notEmpty('an array with at least one item'),
  ),
)

/** Value of `include` that asks for logprobs, without a number of alternatives. */
const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Value of `include` that asks for reasoning in a form that can be sent back. */
const INCLUDE_ENCRYPTED_REASONING = 'reasoning.encrypted_content'

const format = f.taggedUnion('type', {
  text: {},
  ...grammarFormats,
  json_object: {},
  json_schema: {
    name: f.optional(f.string),
    description: f.optional(f.string),
    schema: f.anyObject,
    strict: f.optional(f.flag),
  },
})

const summary = f.optional(f.oneOf(['auto', 'concise', 'detailed']))

export const responsesBodySchema = f.object({
  model: f.tagString,
  input: inputSchema,
  instructions: f.optional(f.string),
  messages: shared.renamedField('send input instead'),
  system: shared.renamedField('send instructions instead'),
  stream: f.optional(f.flag),
  max_output_tokens: f.optional(f.integerAtLeast(1)),
  max_tokens: shared.renamedField('send max_output_tokens instead'),
  max_completion_tokens: shared.renamedField('send max_output_tokens instead'),
  ...shared.chatSampling,
  stop: shared.renamedField('use /v1/chat/completions, which supports it'),
  stop_sequences: shared.renamedField('use /v1/chat/completions, which supports stop'),
  tools: f.optional(toolsSchema),
  tool_choice: responsesToolChoice,
  max_tool_calls: f.optional(f.integerAtLeast(1)),
  text: f.optional(
    f.object({ format: f.optional(format), verbosity: shared.sharedFields.verbosity }),
  ),
  response_format: shared.renamedFormat('send text.format instead'),
  ...shared.renamedOutput('send text.format instead'),
  reasoning: f.optional(
    f.object({
      effort: shared.effortField,
      summary,
      generate_summary: summary,
      mode: f.unsupported(f.string, (mode) => mode === 'standard'),
      // The chat template decides which earlier reasoning the model gets.
      context: f.withoutEffect(f.string, (turns) => turns === 'auto'),
    }),
  ),
  include: f.optional(f.arrayOf(f.string)),
  top_logprobs: shared.topLogprobs,
  previous_response_id: f.optional(f.nonEmptyString),
  conversation: f.optional(
    f.rejectedWith('send previous_response_id, or the whole conversation as input'),
  ),
  store: f.optional(f.flag),
  metadata: f.optional(f.anyObject),
  prompt: f.rejectedField,
  background: f.optional(f.flag),
  truncation: f.unsupported(
    f.oneOf(['disabled', 'auto']),
    (way) => way === 'disabled',
    'shorten the input',
  ),
  thread: f.rejectedField,
  service_tier: f.optional(f.string),
  safety_identifier: f.optional(f.string),
  prompt_cache_key: f.optional(f.string),
  ...shared.sharedFields,
  context_management: f.withoutEffect(v.unknown(), shared.keepsAllContext),
})

/** Accepts the body of a compaction, which needs the input or an earlier response. */
export const compactionBodySchema = f.object({
  model: f.tagString,
  input: f.optional(inputSchema),
  instructions: f.optional(f.string),
  previous_response_id: f.optional(f.nonEmptyString),
  prompt_cache_key: f.optional(f.string),
})

/** Returns what a body of a compaction lacks, if anything. */
export function findCompactionConflict(
  body: v.InferOutput<typeof compactionBodySchema>,
): f.FieldConflict | undefined {
  if (body.input || body.previous_response_id) return undefined
  return f.conflict('input', body.input, 'sent, or previous_response_id')
}

/** Fields that the response repeats, and that have no other effect. */
const REPEATED_FIELDS = [
  'max_tool_calls',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
] as const

export type ResponsesBody = v.InferOutput<typeof responsesBodySchema>

/** Returns the conflict between the fields of a body, if any. */
export function findResponsesConflict(body: ResponsesBody): f.FieldConflict | undefined {
  const { thinking, max_output_tokens, background, store } = body
  if (background && store === false)
    return f.conflict(
      'store',
      store,
      'true or absent with background: true, which stores the response',
    )
  if (background && asksForCompaction(body))
    return f.conflict('background', background, 'false or absent with a compaction_trigger')
  return shared.findBudgetConflict(thinking, max_output_tokens)
}

/** Returns `true` if the response is a compaction of the input. */
export const asksForCompaction = ({ input }: ResponsesBody): boolean =>
  Array.isArray(input) && input.some(({ type }) => type === 'compaction_trigger')

/** Returns the tools of a body, with those of its items, of which the last one of a name counts. */
function listTools(body: ResponsesBody, items: readonly InputItem[]) {
  const own = { tools: body.tools ?? [], ...flattenTools(body.tools ?? [], 'tools') }
  return items.reduce((known, { item: each, path }) => {
    if (!isKnown(each) || (each.type !== 'additional_tools' && each.type !== 'tool_search_output'))
      return known
    const { flat, omitted } = flattenTools(each.tools, `${path}.tools`)
    const names = new Set(flat.map(({ tool }) => tool.name))
    return {
      tools: [...known.tools, ...each.tools],
      flat: [...known.flat.filter(({ tool }) => !names.has(tool.name)), ...flat],
      omitted: [...known.omitted, ...omitted],
    }
  }, own)
}

/**
 * Converts the body. `items` are the resolved input. `tools` are all that the request has, to be
 * repeated in the response.
 */
export function parseResponses(
  { fields: body, ignored }: ParsedBody<ResponsesBody>,
  items: readonly InputItem[],
): ParsedRequest & { tools: readonly ResponsesTool[] } {
  const { instructions: content } = body
  const reasoning = shared.toReasoning(body)
  const isSupported = (name: string): boolean =>
    name === INCLUDE_LOGPROBS || name === INCLUDE_ENCRYPTED_REASONING
  const { tools, flat, omitted } = listTools(body, items)
  const { use, omitted: omittedChoices } = toResponsesToolUse(flat, body)
  const conversation = toMessages(items)
  return {
    tools,
    request: {
      model: body.model,
      messages: withToolNames([
        ...(content ? [{ role: 'system' as const, content }] : []),
        ...conversation.messages,
      ]),
      maxTokens: body.max_output_tokens ?? undefined,
      sampling: shared.toSampling(body),
      stop: [],
      tools: use,
      format: toFormat(body.text?.format),
      reasoningBudget: reasoning.budget,
      ...reasoning.forTemplate,
      logprobs: toTopLogprobs(body),
    },
    fieldNames: {
      rename: [
        [
          /^tools\[(\d+)\](\.input\b.*)?/,
          (found, index = '', input = '') =>
            (flat[Number(index)]?.path ?? found) + (input && '.format.definition'),
        ],
        [/^format\b/, 'text.format'],
        [/^messages\b/, 'input'],
      ],
      reasoning: reasoning.fields,
    },
    ignored: [
      ...ignored,
      ...REPEATED_FIELDS.filter((name) => (body[name] ?? null) !== null),
      ...(body.include?.every(isSupported) === false ? ['include'] : []),
      ...reasoning.ignored,
      ...omitted,
      ...omittedChoices,
      ...conversation.omitted,
    ],
  }
}

/** Returns `true` if the client intends to send reasoning back. */
export const includesEncryptedReasoning = ({ include }: ResponsesBody): boolean =>
  include?.includes(INCLUDE_ENCRYPTED_REASONING) ?? false

/** Returns the number of alternatives for each token, or `undefined` without logprobs. */
export const toTopLogprobs = ({ include, top_logprobs: count }: ResponsesBody) =>
  count || include?.includes(INCLUDE_LOGPROBS) ? (count ?? 0) : undefined

type KnownItem = v.InferOutput<typeof item> | v.InferOutput<typeof messageSchema>
type Item = v.InferOutput<typeof itemsSchema>[number]

const isKnown = (each: Item): each is KnownItem => KNOWN_TYPES.has(each.type)

/** Item, and its path in the body. */
export interface InputItem {
  item: Item
  path: string
}

/** Assistant message that the next items may still extend. */
type OpenMessage = AssistantMessage & { toolCalls?: ToolCall[] }
type InputMessage = Exclude<ChatMessage, AssistantMessage> | OpenMessage

/** Item that becomes a message of its own, or a part of one. */
type ContentItem = Exclude<
  KnownItem,
  | { type: 'item_reference' | 'compaction_trigger' | 'additional_tools' | 'tool_search_output' }
  | ResultItem
>
type ResultItem = Extract<KnownItem, { output?: unknown }>

const isResult = (each: KnownItem): each is ResultItem =>
  typeof each.type === 'string' && each.type.endsWith('_output') && 'output' in each

/**
 * Converts items to messages. Consecutive reasoning, text and calls become one assistant message.
 * Images in tool results become a user message after the last result. `omitted` names the items that
 * are left out.
 */
function toMessages(items: readonly InputItem[]): { messages: ChatMessage[]; omitted: string[] } {
  const messages: InputMessage[] = []
  const omitted: string[] = []
  let resultImages: UserContent[] = []
  const flushImages = (): void => {
    if (resultImages.length > 0) messages.push(toUserMessage(resultImages))
    resultImages = []
  }
  for (const { item: each, path } of items) {
    if (!isKnown(each) || (each.type === 'compaction' && readSummary(each) === null)) {
      omitted.push(`${path}:${String(each.type)}`)
      continue
    }
    // `resolveInput` has replaced every reference that it resolved, and `listTools` read the tools.
    if (
      each.type === 'item_reference' ||
      each.type === 'compaction_trigger' ||
      each.type === 'additional_tools' ||
      each.type === 'tool_search_output'
    )
      continue
    if (isResult(each)) {
      const toolCallId = calls.toCallId(idOfCall(each))
      const userContent = toResultContent(each, `${path}.output`)
      messages.push({ role: 'tool', toolCallId, name: '', content: joinText(userContent) })
      resultImages.push(...userContent.filter((one) => typeof one !== 'string'))
      continue
    }
    flushImages()
    const last = messages.at(-1)
    const open = last?.role === 'assistant' ? last : undefined
    const itemMessage = addToMessage(each, open, path)
    if (itemMessage !== open) messages.push(itemMessage)
  }
  flushImages()
  return { messages, omitted }
}

const idOfCall = (each: { call_id?: string | null | undefined; id?: string | null | undefined }) =>
  each.call_id ?? each.id ?? ''

/** Returns the content of a result. That of some tools is an object. */
function toResultContent(result: ResultItem, path: string): UserContent[] {
  switch (result.type) {
    case 'function_call_output':
    case 'custom_tool_call_output':
      return toUserContent(result.output, path)
    default: {
      const { output = '' } = result
      return [typeof output === 'string' ? output : JSON.stringify(output)]
    }
  }
}

/** Returns the message of an item, or the open assistant message with the item added. */
function addToMessage(
  value: ContentItem,
  open: OpenMessage | undefined,
  path: string,
): InputMessage {
  switch (value.type) {
    case 'function_call':
      return addCall(open, value, toFullName(value), calls.normalizeArguments(value.arguments))
    case 'custom_tool_call':
      return addCall(open, value, toFullName(value), calls.toInputArguments(value.input))
    case 'local_shell_call':
    case 'shell_call':
      return addCall(open, value, value.type.replace(/_call$/, ''), JSON.stringify(value.action))
    case 'apply_patch_call':
      return addCall(open, value, 'apply_patch', JSON.stringify(value.operation))
    case 'compaction':
      return { role: 'user', content: `Summary of the conversation so far:\n${readSummary(value)}` }
    case 'reasoning': {
      const reasoningTexts = value.content?.length ? value.content : value.summary
      const reasoning = (reasoningTexts ?? []).map(({ text }) => text).join('\n')
      return { role: 'assistant', content: '', ...(reasoning !== '' && { reasoning }) }
    }
    default: {
      const userContent = toUserContent(value.content, `${path}.content`)
      if (value.role === 'user') return toUserMessage(userContent)
      const ownText = joinText(userContent)
      if (value.role !== 'assistant') return { role: 'system', content: ownText }
      // Text after reasoning and before any call belongs to the same message.
      if (!open || open.content !== '' || open.toolCalls)
        return { role: 'assistant', content: ownText }
      open.content = ownText
      return open
    }
  }
}

/** Adds a call to the open message, or to a new one. */
function addCall(
  open: OpenMessage | undefined,
  value: Parameters<typeof idOfCall>[0],
  name: string,
  argumentsJson: string,
): OpenMessage {
  const message: OpenMessage = open ?? { role: 'assistant', content: '' }
  message.toolCalls ??= []
  message.toolCalls.push({ id: calls.toCallId(idOfCall(value)), name, arguments: argumentsJson })
  return message
}

function toUserContent(
  value: v.InferOutput<typeof userContentSchema>,
  path: string,
): UserContent[] {
  if (typeof value === 'string') return [value]
  return value.map((each, at) => {
    if (each.type === 'input_image') return toImage(each, `${path}[${at}]`)
    return each.type === 'refusal' ? each.refusal : each.text
  })
}

const joinText = (userContent: readonly UserContent[]): string =>
  userContent.filter((one) => typeof one === 'string').join('')
