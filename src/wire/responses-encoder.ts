/** Encodes a response, as one JSON body or as a stream of events about its items. */
import type { InoriginError } from '../error.ts'
import type { BackgroundEvent, ContentEvent, StoredItem } from '../types/index.ts'
import { encodeStatus, type EventEncoder } from './response-body.ts'
import { wireError } from './errors.ts'
import {
  extendPart,
  findPart,
  jsonEncoder,
  logprobsOf,
  type CompletionPart,
  type FinishEvent,
} from './completion-parts.ts'
import { SSE_TYPE } from './http-response.ts'
import {
  createItemIds,
  createResponseJson,
  type BackgroundHead,
  type ResponseEncoderOptions,
  type ResponseJson,
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
import { frame } from './sse.ts'

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

interface OutputEncoder {
  /** Returns the items so far. One that is not closed is incomplete. */
  items(): StoredItem[]
  /** Returns the frames of new content, which extends the open item or opens another one. */
  encode(event: ContentEvent): string
  /** Closes the open item, if there is one. Returns its last frames. */
  close(status: 'completed' | 'incomplete'): string
  /** Closes the last item. An empty completion gets an empty one. */
  complete(status: 'completed' | 'incomplete'): string
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

  /** Closes the open item and opens another one. Returns the frames of both. */
  const begin = (part: CompletionPart): string => {
    const doneFrames = close('completed')
    open = createOutputItem(part, options.encryptReasoning, createId)
    return doneFrames + encodeItemEvents(itemAddedEvents(open))
  }

  const items = (): StoredItem[] => (open ? [...closed, toItemJson(open, 'incomplete')] : closed)
  const complete: OutputEncoder['complete'] = (status) =>
    (items().length === 0 ? begin(EMPTY_TEXT) : '') + close(status)

  const encode: OutputEncoder['encode'] = (event) => {
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
