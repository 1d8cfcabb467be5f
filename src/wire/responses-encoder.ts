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
import { toCompactionItem } from './compaction.ts'
import { wireError } from './errors.ts'
import { createId, frame, JSON_TYPE, nowInSeconds, SSE_TYPE } from './http.ts'
import {
  type CompletionPart,
  encodeStatus,
  type EventEncoder,
  extendPart,
  findPart,
  logprobsOf,
} from './response-body.ts'
import {
  asksForCompaction,
  includesEncryptedReasoning,
  type ResponsesBody,
  toTopLogprobs,
} from './responses.ts'
import { type CalledName, namesOfTools, type ResponsesTool } from './responses-tools.ts'
import { toReasoning } from './shared-fields.ts'

/** Prefix of the ids of responses. */
export const RESPONSE_PREFIX = 'resp_'

/** Prefix of the ids of compaction items. */
export const COMPACTION_PREFIX = 'cmp_'

/** Response as it is sent, complete or partial. */
export interface ResponseJson extends Readonly<Record<string, unknown>> {
  id: string
  status: Status | 'queued' | 'failed' | 'cancelled'
  output: readonly StoredItem[]
}

/** Stores a response. Resolves with `false` if it cannot. */
type StoreResponse = (body: ResponseJson) => Promise<boolean>

/** Encodes a response as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function responseJsonEncoder(body: ResponsesBody, store?: StoreResponse): EventEncoder {
  const encoder = new ResponseEncoder(body, { store, after: Infinity })
  let isFinished = false
  return {
    type: JSON_TYPE,
    encode(event) {
      encoder.encode(event)
      isFinished = event.type === 'finish'
      return event.type === 'progress' || event.type === 'heartbeat' ? ' ' : ''
    },
    fail: (error) => JSON.stringify(encoder.failed(error)),
    // A response that was aborted is not stored, because no client knows its id.
    settle: async () => (isFinished ? JSON.stringify(await encoder.store()) : ''),
  }
}

/** Text of an empty completion, which becomes one empty message. */
const EMPTY_TEXT: CompletionPart = { type: 'text', text: '', logprobs: [] }

/**
 * Encodes a response as a stream of events, and knows the response so far. The events of a background
 * response are encoded anew for each reader, so its id, its time of creation in seconds since 1970
 * and the ids of its items stay. `after` is the sequence number of the last event that the reader has.
 */
export class ResponseEncoder implements EventEncoder<BackgroundEvent> {
  readonly type = SSE_TYPE
  readonly #body: ResponsesBody
  readonly #store: StoreResponse | undefined
  readonly #background: { id: string; createdAt: number } | undefined
  readonly #after: number
  readonly #head: { id: string; object: string; created_at: number }
  readonly #isReasoningShown: boolean
  /** Names of the tools as the client knows them, by those that the model writes. */
  readonly #names: ReadonlyMap<string, CalledName>
  #status: 'none' | 'queued' | 'in_progress' = 'none'
  #finished: ResponseJson | null = null
  readonly #closed: StoredItem[] = []
  #open: OutputItem | null = null
  #eventCount = 0
  #idCount = 0

  constructor(
    body: ResponsesBody,
    options: {
      store?: StoreResponse | undefined
      background?: { id: string; createdAt: number }
      after?: number
    },
  ) {
    const { store, background, after = -1 } = options
    this.#body = body
    this.#store = store
    this.#background = background
    this.#after = after
    this.#head = {
      id: background?.id ?? createId(RESPONSE_PREFIX),
      object: 'response',
      created_at: background?.createdAt ?? nowInSeconds(),
    }
    this.#isReasoningShown = toReasoning(body).shown
    this.#names = namesOfTools(body.tools)
  }

  /** The response so far. */
  get snapshot(): ResponseJson {
    return this.#finished ?? this.#toJson(this.#status === 'queued' ? 'queued' : 'in_progress')
  }

  encode(event: BackgroundEvent): string {
    switch (event.type) {
      case 'progress':
      case 'served_by':
      case 'heartbeat':
        return encodeStatus(event)
      case 'queued':
        return this.#enter('queued')
      case 'start':
        return this.#enter('in_progress')
      case 'finish':
        return this.#finish(event)
      default:
        return this.#add(event)
    }
  }

  fail(error: InoriginError): string {
    // Some clients read the fields of the event, others those of `error`.
    const fields = wireError(error)
    // A background response goes on, so this event must not take the number of a stored one.
    const sequence_number = this.#background ? this.#eventCount - 1 : this.#eventCount++
    return frame({ ...fields, type: 'error', sequence_number, error: fields }, 'error')
  }

  /** Ends the response with this error, and returns it. It is not stored. */
  failed(error: InoriginError): ResponseJson {
    this.#close('incomplete')
    this.#finished = { ...this.#toJson('failed', null, error), store: false }
    return this.#finished
  }

  async settle(): Promise<string> {
    if (this.#finished) {
      const response = await this.store()
      // Clients know no event of a cancelled response.
      const name = response.status === 'cancelled' ? 'incomplete' : response.status
      return this.#frame(`response.${name}`, { response })
    }
    // A client that aborted the stream may refer to the items that it received.
    if (this.#status !== 'none') await this.#store?.(this.#toJson('incomplete'))
    return ''
  }

  /** Stores the response. Resolves with it, and with `store: false` if it could not be stored. */
  async store(): Promise<ResponseJson> {
    const body = this.snapshot
    return this.#store && !(await this.#store(body)) ? { ...body, store: false } : body
  }

  /** Encodes the next event, unless the reader has it. */
  #frame(type: string, fields: object): string {
    const sequence_number = this.#eventCount++
    return sequence_number <= this.#after ? '' : frame({ type, sequence_number, ...fields }, type)
  }

  #itemFrames(events: readonly ResponseEvent[]): string {
    const output_index = this.#closed.length
    return events.map(([type, fields]) => this.#frame(type, { output_index, ...fields })).join('')
  }

  /** Announces a status; the first one creates the response. */
  #enter(next: 'queued' | 'in_progress'): string {
    const response = this.#toJson(next)
    const created = this.#status === 'none' ? this.#frame('response.created', { response }) : ''
    this.#status = next
    return created + this.#frame(`response.${next}`, { response })
  }

  #finish(event: Extract<BackgroundEvent, { type: 'finish' }>): string {
    if (event.reason === 'failed' || event.reason === 'cancelled') {
      const last = this.#close('incomplete')
      this.#finished = this.#toJson(event.reason, null, 'error' in event ? event.error : undefined)
      return last
    }
    const status = event.reason === 'length' ? 'incomplete' : 'completed'
    const empty = !this.#open && this.#closed.length === 0 ? this.#begin(EMPTY_TEXT) : ''
    const last = empty + this.#close(status)
    const end = event.completedAt ?? (this.#background ? null : nowInSeconds())
    this.#finished = {
      ...this.#toJson(status, event.usage),
      completed_at: status === 'completed' ? end : null,
    }
    return last
  }

  /** Returns the frames of new content, which extends the open item or opens another one. */
  #add(event: ContentEvent): string {
    if (event.type === 'text' && asksForCompaction(this.#body)) return this.#addSummary(event.text)
    const logprobs = logprobsOf(event)
    if ('text' in event && event.text === '' && logprobs.length === 0) return ''
    if (event.type === 'reasoning' && !this.#isReasoningShown) return ''
    const part = findPart(event, this.#open?.part)
    const addedFrames = part && part !== this.#open?.part ? this.#begin(part) : ''
    if (!this.#open || !('text' in event)) return addedFrames
    const shownLogprobs = toTopLogprobs(this.#body) === undefined ? [] : logprobs
    extendPart(this.#open.part, event.text, shownLogprobs)
    return addedFrames + this.#itemFrames([itemDeltaEvent(this.#open, event.text, shownLogprobs)])
  }

  /** Returns the frames of a compaction item, which has no parts. */
  #addSummary(text: string): string {
    const item = toCompactionItem(this.#createId(COMPACTION_PREFIX), text)
    const frames = this.#itemFrames([
      ['response.output_item.added', { item }],
      ['response.output_item.done', { item }],
    ])
    this.#closed.push(item)
    return frames
  }

  /** Closes the open item and opens another one. Returns the frames of both. */
  #begin(part: CompletionPart): string {
    const doneFrames = this.#close('completed')
    const isCustom = part.type === 'call' && part.isCustom
    const isEncrypted = part.type === 'reasoning' && includesEncryptedReasoning(this.#body)
    this.#open = {
      id: this.#createId(PREFIX[isCustom ? 'custom' : part.type]),
      // The part is copied, so that deltas can extend it.
      part: { ...part },
      ...(part.type === 'call' && { called: this.#names.get(part.name) ?? { name: part.name } }),
      ...(isEncrypted && { encryptedContent: this.#createId('seal_') }),
    }
    return doneFrames + this.#itemFrames(itemAddedEvents(this.#open))
  }

  /** Closes the open item, if there is one. Returns its last frames. */
  #close(status: 'completed' | 'incomplete'): string {
    if (!this.#open) return ''
    const doneFrames = this.#itemFrames(itemDoneEvents(this.#open, status))
    this.#closed.push(toItemJson(this.#open, status))
    this.#open = null
    return doneFrames
  }

  #createId(prefix: string): string {
    if (!this.#background) return createId(prefix)
    return `${prefix}${this.#background.id.replace(RESPONSE_PREFIX, '')}${this.#idCount++}`
  }

  /** Returns the response with all fields that clients expect. */
  #toJson(
    status: ResponseJson['status'],
    usage: Usage | null = null,
    failure?: ErrorRecord | InoriginError,
  ): ResponseJson {
    const { reasoning, text, tools, ...fields } = this.#body
    return {
      ...this.#head,
      completed_at: null,
      status,
      background: fields.background ?? false,
      // Some clients read no error without a code.
      error: failure ? { ...wireError(failure), code: failure.code ?? 'server_error' } : null,
      frequency_penalty: fields.frequency_penalty ?? 0,
      instructions: fields.instructions ?? null,
      max_output_tokens: fields.max_output_tokens ?? null,
      max_tool_calls: fields.max_tool_calls ?? null,
      metadata: fields.metadata ?? {},
      model: fields.model,
      parallel_tool_calls: fields.parallel_tool_calls ?? true,
      presence_penalty: fields.presence_penalty ?? 0,
      previous_response_id: fields.previous_response_id ?? null,
      prompt_cache_key: fields.prompt_cache_key ?? null,
      reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
      safety_identifier: fields.safety_identifier ?? null,
      // No request here has another one.
      service_tier: 'default',
      store: fields.store ?? true,
      // Clients need numbers. A model may have other defaults, which this thread does not know.
      temperature: fields.temperature ?? 1,
      text: { format: toFormatJson(text?.format), verbosity: 'medium' },
      tool_choice: fields.tool_choice ?? 'auto',
      tools: (tools ?? []).map(toToolJson),
      top_logprobs: fields.top_logprobs ?? 0,
      top_p: fields.top_p ?? 1,
      truncation: 'disabled',
      // A response that was aborted has no usage, and no reason that clients know.
      incomplete_details: status === 'incomplete' && usage ? { reason: 'max_output_tokens' } : null,
      // An item that is not closed is incomplete.
      output: this.#open
        ? [...this.#closed, toItemJson(this.#open, 'incomplete')]
        : [...this.#closed],
      usage: usage && toUsageJson(usage),
    }
  }
}

/** Returns a tool with the fields that clients expect, as absent or `null`. */
function toToolJson(tool: ResponsesTool): object {
  switch (tool.type) {
    case 'custom':
      return { format: { type: 'text' }, ...tool }
    case 'function':
      return { description: null, strict: false, parameters: {}, ...tool }
    default:
      return tool
  }
}

/** Returns the format of the text with the fields that clients expect. */
function toFormatJson(format: NonNullable<ResponsesBody['text']>['format']): object {
  if (format?.type !== 'json_schema') return format ?? { type: 'text' }
  return { ...format, description: format.description ?? null, strict: format.strict ?? false }
}

/** Returns the token counts of a response. */
export const toUsageJson = (usage: Usage): object => ({
  input_tokens: usage.promptTokens,
  input_tokens_details: { cached_tokens: usage.cachedTokens },
  output_tokens: usage.completionTokens,
  output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  total_tokens: usage.promptTokens + usage.completionTokens,
})

/** Returns the id of the background response that an item would belong to, by its id. */
export function findResponseId(itemId: string): string | null {
  const unprefixed = /^[a-z]+_([0-9a-f]{24})\d+$/.exec(itemId)?.[1]
  return unprefixed === undefined ? null : RESPONSE_PREFIX + unprefixed
}

// The output items of a response, and the stream events of an item.

/** Part of a completion, and the id of its item. */
interface OutputItem {
  id: string
  part: CompletionPart
  /** Name of the called tool as the client knows it. */
  called?: CalledName
  /** Value of `encrypted_content`, never read. Some clients send reasoning back only with it. */
  encryptedContent?: string
}

type Status = 'in_progress' | 'completed' | 'incomplete'

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

/** Returns the item as it appears in `output`. */
function toItemJson(item: OutputItem, status: Status): StoredItem {
  const { part } = item
  if (part.type !== 'call') return toItemWithParts(item, status, [toPartJson(part)])
  const { id: call_id, arguments: text } = part
  const called = { status, call_id, name: part.name, ...item.called }
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
  return { logprobs: logprobs.map((token) => toTokenLogprobJson(token, [])) }
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
    const { name = part.name } = item.called ?? {}
    const { arguments: text } = part
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
