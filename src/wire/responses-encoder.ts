/** Encodes a response, as one JSON body or as a stream of events about its items. */
import type { BackgroundEvent, StoredItem, TokenLogprob } from '../types/index.ts'
import { type EventEncoder, formatProgress, formatServedBy } from './response-body.ts'
import { wireError } from './errors.ts'
import { jsonEncoder, type CompletionPart, type FinishEvent } from './completion-parts.ts'
import { SSE_TYPE } from './http-response.ts'
import {
  createItemIds,
  createResponseJson,
  type ResponseEncoderOptions,
  type ResponseJson,
  type ResponseStatus,
} from './response-json.ts'
import {
  createOutputItem,
  itemAddedEvents,
  itemDeltaEvent,
  itemDoneEvents,
  toItemJson,
  type OutputItem,
  type ResponseEvent,
} from './responses-items.ts'
import { comment, frame } from './sse.ts'

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
  const { background } = options
  let status: 'none' | 'queued' | 'in_progress' = 'none'
  let body: ResponseJson | null = null
  let number = 0
  const encodeEvent = (type: string, fields: object): string => {
    const sequence_number = number++
    if (background && sequence_number <= background.after) return ''
    return frame({ type, sequence_number, ...fields }, type)
  }
  const output = createOutputEncoder(options, encodeEvent)
  const snapshot = (): ResponseJson =>
    body ?? toResponse(status === 'queued' ? status : 'in_progress', output.items(), null)

  function finish(event: FinishOf<BackgroundEvent>): string {
    if (event.reason === 'failed' || event.reason === 'cancelled') {
      const last = output.close('incomplete')
      const failure = event.reason === 'failed' ? event.error : undefined
      body = toResponse(event.reason, output.items(), null, failure)
      return last
    }
    const emptyItemFrames = output.items().length === 0 ? output.begin(EMPTY_TEXT) : ''
    const last = emptyItemFrames + output.close(toStatus(event))
    body = toResponse(toStatus(event), output.items(), event.usage)
    return last
  }

  return {
    type: SSE_TYPE,
    snapshot,
    encode(event) {
      switch (event.type) {
        case 'progress':
          return comment(formatProgress(event.progress))
        case 'served_by':
          return comment(formatServedBy(event))
        case 'heartbeat':
          return comment('heartbeat')
        case 'queued': {
          status = 'queued'
          const response = snapshot()
          return (
            encodeEvent('response.created', { response }) +
            encodeEvent('response.queued', { response })
          )
        }
        case 'start': {
          const wasQueued = status === 'queued'
          status = 'in_progress'
          const response = snapshot()
          return (
            (wasQueued ? '' : encodeEvent('response.created', { response })) +
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
        case 'finish':
          return finish(event)
      }
    },
    fail: (error) => {
      // Some clients read the fields of the event, others those of `error`.
      const fields = wireError(error)
      // A background response goes on, so this event must not take the number of a stored one.
      const sequence_number = background ? number - 1 : number++
      return frame({ ...fields, type: 'error', sequence_number, error: fields }, 'error')
    },
    // A client that aborted the stream may refer to the items that it received.
    settle: async () => {
      if (body) {
        const response = await storeResponse(body, options)
        return encodeEvent(`response.${LAST_EVENT[response.status] ?? response.status}`, {
          response,
        })
      }
      if (status !== 'none') await options.store?.(toResponse('incomplete', output.items(), null))
      return ''
    },
  }
}

type FinishOf<Event> = Extract<Event, { type: 'finish' }>

/** Names of last events that differ from the status, because clients know no event of that name. */
const LAST_EVENT: Readonly<Partial<Record<ResponseStatus, string>>> = { cancelled: 'incomplete' }

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
  const createId = options.background && createItemIds(options.background.id)

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
    open = createOutputItem(part, options.encryptReasoning, createId)
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
