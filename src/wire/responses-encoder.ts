/** Encodes a response, as one JSON body or as a stream of events about its items. */
import type { StoredItem, TokenLogprob, Usage } from '../types/index.ts'
import { type EventEncoder, formatProgress } from './response-body.ts'
import { wireError } from './errors.ts'
import { id, nowInSeconds } from './id.ts'
import { jsonEncoder, type CompletionPart, type FinishEvent } from './completion-parts.ts'
import { SSE_TYPE } from './http-response.ts'
import {
  createOutputItem,
  itemAddedEvents,
  itemDeltaEvent,
  itemDoneEvents,
  toItemJson,
  type OutputItem,
  type ResponseEvent,
  type Status,
} from './responses-items.ts'
import type { ResponsesBody } from './responses.ts'
import { comment, frame } from './sse.ts'

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
}

/** Response as it is sent, complete or partial. */
export interface ResponseJson extends Readonly<Record<string, unknown>> {
  id: string
  status: Status
  output: readonly StoredItem[]
}

/** Returns a function that creates the response object with all fields that clients expect. */
function createResponseJson({ requestBody }: ResponseEncoderOptions) {
  const head = { id: id('resp_'), object: 'response', created_at: nowInSeconds() }
  const { reasoning, text, tools, ...fields } = requestBody
  const repeatedFields = {
    background: false,
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
    tools: (tools ?? []).map((tool) => ({ strict: true, parameters: {}, ...tool })),
    top_p: fields.top_p ?? null,
    truncation: 'disabled',
  }
  return (status: Status, output: readonly StoredItem[], usage: Usage | null): ResponseJson => ({
    ...head,
    status,
    ...repeatedFields,
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

/** Encodes a response as a stream of events. */
export function responseStreamEncoder(options: ResponseEncoderOptions): EventEncoder {
  const toResponse = createResponseJson(options)
  let isStarted = false
  let body: ResponseJson | null = null
  let number = 0
  const encodeEvent = (type: string, fields: object): string =>
    frame({ type, sequence_number: number++, ...fields }, type)
  const output = createOutputEncoder(options, encodeEvent)

  return {
    type: SSE_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
          return comment(formatProgress(event.progress))
        case 'heartbeat':
          return comment('heartbeat')
        case 'start': {
          isStarted = true
          const response = toResponse('in_progress', [], null)
          return (
            encodeEvent('response.created', { response }) +
            encodeEvent('response.in_progress', { response })
          )
        }
        case 'reasoning':
          return options.reasoning ? output.add('reasoning', event.text) : ''
        case 'text':
          return output.add('text', event.text, event.logprobs)
        case 'tool_call':
          return output.begin({ type: 'call', id: event.id, name: event.name, arguments: '' })
        case 'tool_arguments':
          return output.add('call', event.text)
        case 'finish': {
          const status = toStatus(event)
          const emptyItemFrames = output.items().length === 0 ? output.begin(EMPTY_TEXT) : ''
          const last = emptyItemFrames + output.close(status)
          body = toResponse(status, output.items(), event.usage)
          return last
        }
      }
    },
    fail: (error) => {
      // Some clients read the fields of the event, others those of `error`.
      const fields = wireError(error)
      return frame({ ...fields, type: 'error', sequence_number: number++, error: fields }, 'error')
    },
    // A client that aborted the stream may refer to the items that it received.
    settle: async () => {
      if (body) {
        const response = await storeResponse(body, options)
        return encodeEvent(`response.${response.status}`, { response })
      }
      if (isStarted) await options.store?.(toResponse('incomplete', output.items(), null))
      return ''
    },
  }
}

interface OutputEncoder {
  /** Returns the items so far. One that is not closed is incomplete. */
  items(): StoredItem[]
  /** Closes the open item and opens another one. Returns the frames of both. */
  begin(part: CompletionPart): string
  /** Extends the open item, or opens one if that has another type. Returns the frames. */
  add(type: CompletionPart['type'], text: string, logprobs?: readonly TokenLogprob[]): string
  /** Closes the open item, if there is one. Returns its last frames. */
  close(status: 'completed' | 'incomplete'): string
}

/** Creates an encoder of the items of a response. */
function createOutputEncoder(
  options: ResponseEncoderOptions,
  encodeEvent: (type: string, fields: object) => string,
): OutputEncoder {
  const closed: StoredItem[] = []
  let open: OutputItem | null = null

  const encodeItemEvents = (events: readonly ResponseEvent[]): string =>
    events
      .map(([type, fields]) => encodeEvent(type, { output_index: closed.length, ...fields }))
      .join('')

  const close: OutputEncoder['close'] = (status) => {
    if (!open) return ''
    const doneFrames = encodeItemEvents(itemDoneEvents(open, status))
    closed.push(toItemJson(open, status))
    open = null
    return doneFrames
  }

  const begin: OutputEncoder['begin'] = (part) => {
    const doneFrames = close('completed')
    open = createOutputItem(part, options.encryptReasoning)
    return doneFrames + encodeItemEvents(itemAddedEvents(open))
  }

  const add: OutputEncoder['add'] = (type, text, logprobs = []) => {
    if (text === '' && logprobs.length === 0) return ''
    const addedFrames = open?.part.type === type ? '' : begin(emptyPart(type))
    if (!open) return addedFrames
    const { part } = open
    if (part.type === 'call') part.arguments += text
    else part.text += text
    if (part.type === 'text' && options.logprobs) part.logprobs.push(...logprobs)
    return (
      addedFrames + encodeItemEvents([itemDeltaEvent(open, text, options.logprobs ? logprobs : [])])
    )
  }

  const items = (): StoredItem[] => (open ? [...closed, toItemJson(open, 'incomplete')] : closed)
  return { items, begin, add, close }
}

function emptyPart(type: CompletionPart['type']): CompletionPart {
  switch (type) {
    case 'call':
      return { type, id: '', name: '', arguments: '' }
    case 'reasoning':
      return { type, text: '' }
    case 'text':
      return { type, text: '', logprobs: [] }
  }
}
