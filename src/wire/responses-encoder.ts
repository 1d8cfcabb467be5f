/** Encodes a response, as one JSON body or as a stream of events about its items. */
import type { ErrorRecord, InoriginError } from '../error.ts'
import type {
  BackgroundEvent,
  ContentEvent,
  StoredItem,
  TokenLogprob,
  Usage,
} from '../types/index.ts'
import { toTokenLogprobJson } from './chat-encoder.ts'
import { wireError } from './errors.ts'
import { createId, frame, nowInSeconds, SSE_TYPE } from './http.ts'
import {
  type CompletionPart,
  encodeStatus,
  type EventEncoder,
  extendPart,
  findPart,
  type FinishEvent,
  jsonEncoder,
  logprobsOf,
} from './response-body.ts'
import type { ResponsesBody } from './responses.ts'

const toStatus = ({ reason }: FinishEvent) => (reason === 'length' ? 'incomplete' : 'completed')

/** Encodes a response as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function responseJsonEncoder(options: ResponseEncoderOptions): EventEncoder {
  const toResponse = createResponseJson(options)
  // A response that was aborted is not stored, because no client knows its id.
  return jsonEncoder((parts, finish) => {
    const status = toStatus(finish)
    const shownParts = parts.filter(({ type }) => options.reasoning || type !== 'reasoning')
    const items = (shownParts.length > 0 ? shownParts : [EMPTY_TEXT]).map((part) =>
      createOutputItem(part, options.encryptReasoning),
    )
    const output = items.map((item, index) =>
      toItemJson(item, index === items.length - 1 ? status : 'completed'),
    )
    return storeResponse(toResponse(status, output, finish.usage), options)
  })
}

/** Stores a response. Resolves with it, and with `store: false` if it could not be stored. */
async function storeResponse(
  body: ResponseJson,
  { store }: ResponseEncoderOptions,
): Promise<ResponseJson> {
  return store && !(await store(body)) ? { ...body, store: false } : body
}

/** Text of an empty completion, which becomes one empty message. */
const EMPTY_TEXT: CompletionPart = { type: 'text', text: '', logprobs: [] }

/** Encodes a response as a stream of events, and knows the response so far. */
export interface ResponseStreamEncoder extends EventEncoder<BackgroundEvent> {
  /** Returns the response so far. */
  snapshot(): ResponseJson
}

export function responseStreamEncoder(options: ResponseEncoderOptions): ResponseStreamEncoder {
  const toResponse = createResponseJson(options)
  let status: 'none' | 'queued' | 'in_progress' = 'none'
  let body: ResponseJson | null = null
  const { encodeEvent, encodeError } = createEventNumbers(options.background)
  const output = createOutputEncoder(options, encodeEvent)
  const snapshot = (): ResponseJson =>
    body ?? toResponse(status === 'queued' ? status : 'in_progress', output.items(), null)

  /** Announces a status; the first one creates the response. */
  function enter(next: 'queued' | 'in_progress'): string {
    const response = toResponse(next, output.items(), null)
    const created = status === 'none' ? encodeEvent('response.created', { response }) : ''
    status = next
    return created + encodeEvent(`response.${next}`, { response })
  }

  function finish(event: FinishOf<BackgroundEvent>): string {
    if (event.reason === 'failed' || event.reason === 'cancelled') {
      const last = output.close('incomplete')
      const failure = 'error' in event ? event.error : undefined
      body = toResponse(event.reason, output.items(), null, failure)
      return last
    }
    const last = output.complete(toStatus(event))
    body = toResponse(toStatus(event), output.items(), event.usage)
    return last
  }

  return {
    type: SSE_TYPE,
    snapshot,
    encode(event) {
      switch (event.type) {
        case 'progress':
        case 'served_by':
        case 'heartbeat':
          return encodeStatus(event)
        case 'queued':
          return enter('queued')
        case 'start':
          return enter('in_progress')
        case 'finish':
          return finish(event)
        default:
          return output.encode(event)
      }
    },
    fail: encodeError,
    // A client that aborted the stream may refer to the items that it received.
    settle: async () => {
      if (body) {
        const response = await storeResponse(body, options)
        return encodeEvent(lastEventOf(response), { response })
      }
      if (status !== 'none') await options.store?.(toResponse('incomplete', output.items(), null))
      return ''
    },
  }
}

type FinishOf<Event> = Extract<Event, { type: 'finish' }>

/** Returns the name of the last event. Clients know no event of a cancelled response. */
const lastEventOf = ({ status }: ResponseJson): string =>
  `response.${status === 'cancelled' ? 'incomplete' : status}`

/**
 * Creates an encoder that numbers the events of a response. Of a background response it encodes only
 * those after `after`.
 */
function createEventNumbers(background: BackgroundHead | undefined) {
  let number = 0
  return {
    encodeEvent(type: string, fields: object): string {
      const sequence_number = number++
      if (background && sequence_number <= background.after) return ''
      return frame({ type, sequence_number, ...fields }, type)
    },
    encodeError(error: InoriginError): string {
      // Some clients read the fields of the event, others those of `error`.
      const fields = wireError(error)
      // A background response goes on, so this event must not take the number of a stored one.
      const sequence_number = background ? number - 1 : number++
      return frame({ ...fields, type: 'error', sequence_number, error: fields }, 'error')
    },
  }
}

/** Creates an encoder of the items of a response. */
function createOutputEncoder(
  options: ResponseEncoderOptions,
  encodeEvent: (type: string, fields: object) => string,
) {
  const closed: StoredItem[] = []
  let open: OutputItem | null = null
  const itemIds = options.background && createItemIds(options.background.id)

  const encodeItemEvents = (events: readonly ResponseEvent[]): string =>
    events
      .map(([type, fields]) => encodeEvent(type, { output_index: closed.length, ...fields }))
      .join('')

  /** Closes the open item, if there is one. Returns its last frames. */
  const close = (status: 'completed' | 'incomplete'): string => {
    if (!open) return ''
    const doneFrames = encodeItemEvents(itemDoneEvents(open, status))
    closed.push(toItemJson(open, status))
    open = null
    return doneFrames
  }

  /** Closes the open item and opens another one. Returns the frames of both. */
  const begin = (part: CompletionPart): string => {
    const doneFrames = close('completed')
    open = createOutputItem(part, options.encryptReasoning, itemIds)
    return doneFrames + encodeItemEvents(itemAddedEvents(open))
  }

  /** Returns the items so far. One that is not closed is incomplete. */
  const items = () => (open ? [...closed, toItemJson(open, 'incomplete')] : closed)

  /** Closes the last item. An empty completion gets an empty one. */
  const complete = (status: 'completed' | 'incomplete'): string =>
    (items().length === 0 ? begin(EMPTY_TEXT) : '') + close(status)

  /** Returns the frames of new content, which extends the open item or opens another one. */
  const encode = (event: ContentEvent): string => {
    const logprobs = logprobsOf(event)
    if ('text' in event && event.text === '' && logprobs.length === 0) return ''
    if (event.type === 'reasoning' && !options.reasoning) return ''
    const part = findPart(event, open?.part)
    const addedFrames = part && part !== open?.part ? begin(part) : ''
    if (!open || !('text' in event)) return addedFrames
    const shownLogprobs = options.logprobs ? logprobs : []
    extendPart(open.part, event.text, shownLogprobs)
    return addedFrames + encodeItemEvents([itemDeltaEvent(open, event.text, shownLogprobs)])
  }
  return { items, encode, close, complete }
}

// Creates the output items of a response, and the stream events of an item.

/** Part of a completion, and the id of its item. */
interface OutputItem {
  id: string
  part: CompletionPart
  /** Value of `encrypted_content`, never read. Some clients send reasoning back only with it. */
  encryptedContent?: string
}

type Status = 'in_progress' | 'completed' | 'incomplete'

/** Creates the id of an item with that prefix. */
type CreateId = (prefix: string) => string
/** Type of a stream event, and its fields apart from those that all events have. */
type ResponseEvent = readonly [type: string, fields: object]

const PREFIX = { reasoning: 'rs_', text: 'msg_', call: 'fc_', custom: 'ctc_' } as const

/** Names of the events about the part of an item, and the field that numbers it. */
const EVENTS = {
  reasoning: {
    part: 'response.reasoning_summary_part',
    text: 'response.reasoning_summary_text',
    position: { summary_index: 0 },
  },
  text: {
    part: 'response.content_part',
    text: 'response.output_text',
    position: { content_index: 0 },
  },
} as const

/** Creates the item of a part. The part is copied, so that deltas can extend it. */
function createOutputItem(
  part: CompletionPart,
  isEncrypted: boolean,
  itemId: CreateId = createId,
): OutputItem {
  const isCustom = part.type === 'call' && part.isCustom
  const item = { id: itemId(PREFIX[isCustom ? 'custom' : part.type]), part: { ...part } }
  return isEncrypted && part.type === 'reasoning'
    ? { ...item, encryptedContent: itemId('seal_') }
    : item
}

/** Returns the item as it appears in `output`. */
function toItemJson(item: OutputItem, status: Status): StoredItem {
  const { part } = item
  if (part.type !== 'call') return toItemWithParts(item, status, [toPartJson(part)])
  const { id: call_id, name, arguments: text } = part
  const called = { status, call_id, name }
  return part.isCustom
    ? { id: item.id, type: 'custom_tool_call', ...called, input: text }
    : { id: item.id, type: 'function_call', ...called, arguments: text }
}

function toItemWithParts(
  { id: itemId, part, encryptedContent }: OutputItem,
  status: Status,
  parts: readonly object[],
): StoredItem {
  if (part.type === 'text')
    return { id: itemId, type: 'message', status, role: 'assistant', content: parts }
  return {
    id: itemId,
    type: 'reasoning',
    summary: parts,
    ...(encryptedContent && { encrypted_content: encryptedContent }),
  }
}

function toPartJson(part: Exclude<CompletionPart, { type: 'call' }>) {
  const { text } = part
  if (part.type === 'reasoning') return { type: 'summary_text', text }
  return { type: 'output_text', text, annotations: [], ...toLogprobs(part.logprobs) }
}

function toLogprobs(logprobs: readonly TokenLogprob[]) {
  return { logprobs: logprobs.map(toTokenLogprobJson) }
}

/** Returns the events that open an empty item. */
function itemAddedEvents(item: OutputItem): ResponseEvent[] {
  const { id: item_id, part } = item
  const added = (json: StoredItem): ResponseEvent => ['response.output_item.added', { item: json }]
  if (part.type === 'call') return [added(toItemJson(item, 'in_progress'))]
  const { part: name, position } = EVENTS[part.type]
  return [
    added(toItemWithParts(item, 'in_progress', [])),
    [`${name}.added`, { item_id, ...position, part: toPartJson(part) }],
  ]
}

/** Returns the name of the events about the arguments of a call, or about its text. */
const callEvent = ({ isCustom }: { isCustom?: boolean | undefined }): string =>
  `response.${isCustom ? 'custom_tool_call_input' : 'function_call_arguments'}`

/** Returns the event that extends an item. */
function itemDeltaEvent(
  { id: item_id, part }: OutputItem,
  delta: string,
  logprobs: readonly TokenLogprob[],
): ResponseEvent {
  const { type } = part
  if (type === 'call') return [`${callEvent(part)}.delta`, { item_id, delta }]
  const { text: name, position } = EVENTS[type]
  const fields = { item_id, ...position, delta }
  return [`${name}.delta`, type === 'text' ? { ...fields, ...toLogprobs(logprobs) } : fields]
}

/** Returns the events that close an item, complete or not. */
function itemDoneEvents(item: OutputItem, status: 'completed' | 'incomplete'): ResponseEvent[] {
  const { id: item_id, part } = item
  const done: ResponseEvent = ['response.output_item.done', { item: toItemJson(item, status) }]
  if (part.type === 'call') {
    const { name, arguments: text } = part
    const fields = part.isCustom ? { input: text } : { name, arguments: text }
    return [[`${callEvent(part)}.done`, { item_id, ...fields }], done]
  }
  const { part: partName, text: textName, position } = EVENTS[part.type]
  const { text } = part
  const logprobs = part.type === 'text' ? toLogprobs(part.logprobs) : {}
  return [
    [`${textName}.done`, { item_id, ...position, text, ...logprobs }],
    [`${partName}.done`, { item_id, ...position, part: toPartJson(part) }],
    done,
  ]
}

// Creates the response object, which clients receive complete or partial.

/** Prefix of the ids of responses. */
export const RESPONSE_PREFIX = 'resp_'

/** Options that decide what a response contains. */
export interface ResponseEncoderOptions {
  /** Body of the request. The response repeats some of its fields. */
  requestBody: ResponsesBody
  reasoning: boolean
  logprobs: boolean
  /** `true` if the client asked for `reasoning.encrypted_content`, to send reasoning back. */
  encryptReasoning: boolean
  /** Stores the response; resolves with `false` if it cannot. Absent: it is not stored. */
  store?(body: ResponseJson): Promise<boolean>
  /** Absent if the response is not computed in the background. */
  background?: BackgroundHead
}

/** Fields of a background response that stay, because its events are encoded anew for each reader. */
interface BackgroundHead {
  id: string
  /** Time of creation in seconds since 1970. */
  createdAt: number
  /** Sequence number of the last event that the reader has; -1 if it has none. */
  after: number
}

/** Response as it is sent, complete or partial. */
export interface ResponseJson extends Readonly<Record<string, unknown>> {
  id: string
  status: ResponseStatus
  output: readonly StoredItem[]
}

type ResponseStatus = Status | 'queued' | 'failed' | 'cancelled'

/** Returns a function that creates the response object with all fields that clients expect. */
function createResponseJson({ requestBody, background }: ResponseEncoderOptions) {
  const head = {
    id: background?.id ?? createId(RESPONSE_PREFIX),
    object: 'response',
    created_at: background?.createdAt ?? nowInSeconds(),
  }
  const { reasoning, text, tools, ...fields } = requestBody
  const repeatedFields = {
    background: fields.background ?? false,
    error: null,
    instructions: fields.instructions ?? null,
    max_output_tokens: fields.max_output_tokens ?? null,
    metadata: fields.metadata ?? {},
    model: fields.model,
    parallel_tool_calls: fields.parallel_tool_calls ?? true,
    previous_response_id: fields.previous_response_id ?? null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    store: fields.store ?? true,
    temperature: fields.temperature ?? null,
    text: { format: text?.format ?? { type: 'text' } },
    tool_choice: fields.tool_choice ?? 'auto',
    tools: (tools ?? []).map((tool) =>
      tool.type === 'custom'
        ? { format: { type: 'text' }, ...tool }
        : { strict: false, parameters: {}, ...tool },
    ),
    top_p: fields.top_p ?? null,
    truncation: 'disabled',
  }
  return (
    status: ResponseStatus,
    output: readonly StoredItem[],
    usage: Usage | null,
    failure?: ErrorRecord,
  ): ResponseJson => ({
    ...head,
    status,
    ...repeatedFields,
    ...(failure && { error: { code: 'server_error', message: failure.message } }),
    // A response that was aborted has no usage, and no reason that clients know.
    incomplete_details: status === 'incomplete' && usage ? { reason: 'max_output_tokens' } : null,
    output,
    usage: usage && toUsageJson(usage),
  })
}

function toUsageJson({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  }
}

/** Creates the ids of the items of a background response, the same ones each time. */
function createItemIds(responseId: string): CreateId {
  let items = 0
  return (prefix) => `${prefix}${responseId.replace(RESPONSE_PREFIX, '')}${items++}`
}

/** Returns the id of the background response that an item would belong to, by its id. */
export function findResponseId(itemId: string): string | null {
  const unprefixed = /^[a-z]+_([0-9a-f]{24})\d+$/.exec(itemId)?.[1]
  return unprefixed === undefined ? null : RESPONSE_PREFIX + unprefixed
}
