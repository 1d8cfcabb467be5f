/**
 * `/v1/responses` over a WebSocket. Each message of a client asks for a response, one after the other,
 * and each event of a response is one message. A client may continue the last responses of its
 * connection, also those that are not stored, and then sends the new items only.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import * as v from 'valibot'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import { MAX_BODY_BYTES } from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'
import { readStream } from '../../values/bytes.ts'
import { isObject } from '../../values/objects.ts'
import { shorten } from '../../values/text.ts'
import { wireError } from '../../wire/errors.ts'
import { nowInSeconds } from '../../wire/http.ts'
import { responsesBodySchema } from '../../wire/responses.ts'
import { ResponseEncoder, toUsageJson } from '../../wire/responses-encoder.ts'
import { assertCallsExist } from '../../wire/responses-tools.ts'
import { toFrame } from './tab.ts'

/** Path of the WebSocket, which is that of the endpoint. */
export const RESPONSES_PATH = '/v1/responses'

/** Response of a tab to one request. */
interface Answer {
  status: number
  headers: readonly (readonly [name: string, value: string])[]
  body: ReadableStream<Uint8Array>
}

/** Sends a body to the path in a tab. Resolves when `read` has read the response. */
export type Exchange = (
  path: string,
  body: Uint8Array,
  signal: AbortSignal,
  read: (answer: Answer) => Promise<void>,
) => Promise<void>

/** Maximum number of clients that are connected at once. */
const MAX_CLIENTS = 32
/** Maximum number of messages of a client that wait for the response before. */
const MAX_WAITING_MESSAGES = 16
/** Number of responses of a connection that can be continued without being stored. */
const MAX_KEPT_RESPONSES = 8
const GOING_AWAY = 1001
const TRY_AGAIN_LATER = 1013

/** The WebSockets of clients. */
export class ResponseSockets {
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_BODY_BYTES })

  /** Accepts a client, whose requests `exchange` sends. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, exchange: Exchange): void {
    this.#server.handleUpgrade(request, socket, head, (one) => {
      one.on('error', () => one.terminate())
      if (this.#server.clients.size > MAX_CLIENTS)
        one.close(TRY_AGAIN_LATER, `More than ${MAX_CLIENTS} clients.`)
      else new ResponseSocket(one, exchange).listen()
    })
  }

  /** Closes all connections, and cancels their requests. */
  close(): void {
    for (const client of this.#server.clients) client.close(GOING_AWAY, 'The command ended.')
  }
}

type Json = Record<string, unknown>

/** A response that the client can continue: the whole conversation, or what follows a stored one. */
interface KeptResponse {
  /** Id of the stored response before the items; `undefined` if the items are all. */
  base: unknown
  items: readonly Json[]
}

/** One message of a client, without what is only for the connection. */
interface Turn {
  /** Id of the response that it continues, as the client sent it. */
  previous: unknown
  base: unknown
  /** Items after the base: those of the kept response, and the new ones. */
  items: readonly Json[]
  /** Body of the request to the tab. */
  body: Json
}

class ResponseSocket {
  readonly #socket: WebSocket
  readonly #exchange: Exchange
  readonly #left = new AbortController()
  readonly #kept = new Map<unknown, KeptResponse>()
  readonly #waiting: string[] = []
  #isBusy = false

  constructor(socket: WebSocket, exchange: Exchange) {
    this.#socket = socket
    this.#exchange = exchange
  }

  /** Answers messages until the connection is closed. */
  listen(): void {
    this.#socket.on('close', () => this.#left.abort())
    this.#socket.on('message', (data: RawData, isBinary: boolean) => {
      const frame = toFrame(data, isBinary)
      const text = typeof frame === 'string' ? frame : new TextDecoder().decode(frame)
      if (this.#waiting.length >= MAX_WAITING_MESSAGES) void this.#sendError(queueFull())
      else {
        this.#waiting.push(text)
        if (!this.#isBusy) void this.#answerAll()
      }
    })
  }

  async #answerAll(): Promise<void> {
    this.#isBusy = true
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      // Nobody receives what goes wrong after the client has left.
      await this.#answer(text).catch((error: unknown) => this.#sendError(error))
    }
    this.#isBusy = false
  }

  async #answer(text: string): Promise<void> {
    const { generates, ...fields } = parseMessage(text)
    const { previous_response_id: previous } = fields.body
    try {
      const turn = this.#continue(fields.body)
      if (generates) await this.#generate(turn)
      else await this.#prepare(turn)
    } catch (error) {
      // The conversation may be the reason, so the client has to send it as a whole.
      if (!this.#left.signal.aborted) this.#kept.delete(previous)
      throw error
    }
  }

  /** Adds the conversation of a kept response to the body. Throws if a result has no call in it. */
  #continue(body: Json): Turn {
    const { previous_response_id: previous, input, ...rest } = body
    const kept = this.#kept.get(previous)
    const base = kept ? kept.base : (previous ?? undefined)
    const before = kept?.items ?? []
    const items = [...before, ...toItems(input)]
    if (kept && base === undefined) assertCallsExist(items, before.length)
    // The tab refuses an input, or an item, that is none.
    const isInput = input === undefined || input === null || typeof input === 'string'
    const all = Array.isArray(input) ? [...before, ...input] : isInput ? items : input
    const ownBody = kept ? { input: all } : { ...(input !== undefined && { input }) }
    return {
      previous,
      base,
      items,
      body: { ...rest, ...ownBody, ...(base !== undefined && { previous_response_id: base }) },
    }
  }

  async #generate(turn: Turn): Promise<void> {
    const body = encode({ ...turn.body, stream: true })
    await this.#exchange(RESPONSES_PATH, body, this.#left.signal, async (answer) => {
      if (answer.status !== 200) return this.#refuse(answer, turn)
      for await (const data of readEvents(answer.body)) {
        if (data === null) this.#socket.ping()
        else await this.#sendEvent(JSON.parse(data) as Json, turn)
      }
    })
  }

  /** Checks the request and counts its tokens. Responds with an empty response. */
  async #prepare(turn: Turn): Promise<void> {
    let promptTokens: number | null = null
    const body = encode(turn.body)
    await this.#exchange(
      `${RESPONSES_PATH}/input_tokens`,
      body,
      this.#left.signal,
      async (answer) => {
        if (answer.status !== 200) return this.#refuse(answer, turn)
        const { input_tokens: count } = (await new Response(answer.body).json()) as Json
        promptTokens = Number(count)
      },
    )
    if (promptTokens === null) return
    const { snapshot } = new ResponseEncoder(v.parse(responsesBodySchema, turn.body), {})
    const usage = { promptTokens, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }
    const end = { status: 'completed', completed_at: nowInSeconds(), usage: toUsageJson(usage) }
    const events = [
      ['response.created', snapshot],
      ['response.in_progress', snapshot],
      ['response.completed', { ...snapshot, ...end }],
    ] as const
    for (const [index, [type, response]] of events.entries())
      await this.#sendEvent({ type, sequence_number: index, response }, turn)
  }

  /** Sends an event. Keeps a response that is complete, and forgets what a failed one continued. */
  async #sendEvent(event: Json, { previous, base, items }: Turn): Promise<void> {
    const { type, response } = event
    if (type === 'error' || type === 'response.failed') this.#kept.delete(previous)
    if (!isObject(response)) return this.#send(event)
    if (type === 'response.completed' || type === 'response.incomplete') {
      const output = Array.isArray(response['output']) ? response['output'].filter(isObject) : []
      this.#kept.set(response['id'], { base, items: [...items, ...output] })
      const [oldest] = this.#kept.keys()
      if (this.#kept.size > MAX_KEPT_RESPONSES) this.#kept.delete(oldest)
    }
    await this.#send({
      ...event,
      response: { ...response, previous_response_id: previous ?? null },
    })
  }

  /** Sends the error of a tab's response. What it continued has to be sent as a whole then. */
  async #refuse({ status, body }: Answer, { previous }: Turn): Promise<void> {
    this.#kept.delete(previous)
    const { error } = (await new Response(body).json()) as { error: Json }
    await this.#sendFailure(status, error)
  }

  #sendError(thrown: unknown): Promise<void> {
    const error = InoriginError.from(thrown)
    return this.#sendFailure(error.status, wireError(error))
  }

  /** Sends an error. Clients of this protocol expect a code in each. */
  #sendFailure(status: number, error: Json): Promise<void> {
    const code = error['code'] ?? error['type']
    return this.#send({ type: 'error', status, error: { ...error, code } })
  }

  /** Resolves when the message is written, so a client that reads nothing stops the model. */
  #send(message: Json): Promise<void> {
    return new Promise((resolve) => {
      if (this.#socket.readyState !== this.#socket.OPEN) resolve()
      else this.#socket.send(JSON.stringify(message), () => resolve())
    })
  }
}

/** Parses a message. `generates` is `false` if the client only prepares a request. */
function parseMessage(text: string): { body: Json; generates: boolean } {
  const { type, generate, background, stream: _, stream_options: __, ...body } = parseJson(text)
  if (type !== 'response.create') {
    const what = `\`type\` must be "response.create", not ${shorten(JSON.stringify(type) ?? 'absent')}.`
    const details = { code: 'invalid_value', param: 'type' } as const
    throw new InoriginError('invalid_request', what, details)
  }
  if (background === true) {
    const what = '`background` is not supported over a WebSocket; send the request over HTTP.'
    const details = { code: 'unsupported_parameter', param: 'background' } as const
    throw new InoriginError('invalid_request', what, details)
  }
  return { body, generates: generate !== false }
}

function parseJson(text: string): Json {
  try {
    const message: unknown = JSON.parse(text)
    if (isObject(message)) return message
  } catch {
    // The error is the same as for JSON that is no object.
  }
  const what = 'The message must be a JSON object, such as {"type": "response.create", ...}.'
  throw new InoriginError('invalid_request', what, { code: 'invalid_json' })
}

/** Returns the items of an input. What is no input is left to the tab, which refuses it. */
function toItems(input: unknown): readonly Json[] {
  if (Array.isArray(input)) return input.filter(isObject)
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : []
}

function encode(body: Json): Uint8Array {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  if (bytes.byteLength <= MAX_BODY_BYTES) return bytes
  const what = `The conversation is larger than ${MAX_BODY_BYTES} bytes. Compact it, or start anew.`
  throw new InoriginError('too_large', what, { code: 'request_too_large' })
}

/** Yields the data of server-sent events, and `null` for each comment. */
async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string | null> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of readStream(body)) {
    text += decoder.decode(piece, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: '))
      yield data === undefined ? null : data.slice('data: '.length)
    }
  }
}

const queueFull = (): InoriginError =>
  new InoriginError(
    'rate_limit',
    `More than ${MAX_WAITING_MESSAGES} messages wait. Send the next one after a response.`,
    { code: 'queue_full', retryAfter: 1 },
  )
