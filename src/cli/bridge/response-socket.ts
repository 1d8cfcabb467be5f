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
import { readTokens } from '../../values/json.ts'
import { isObject } from '../../values/objects.ts'
import { shorten } from '../../values/text.ts'
import { wireError } from '../../wire/errors.ts'
import { nowInSeconds } from '../../wire/http.ts'
import { responsesBodySchema } from '../../wire/responses.ts'
import { ResponseEncoder, toUsageJson } from '../../wire/responses-encoder.ts'
import { assertCallsExist } from '../../wire/responses-tools.ts'
import { sendRawRefusal, toResponse } from './refusals.ts'
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

  constructor() {
    this.#server.on('wsClientError', ({ message }, socket) => {
      const error = new InoriginError('invalid_request', `The WebSocket is refused: ${message}.`)
      const refusal = toResponse(error)
      refusal.headers.set('sec-websocket-version', '13')
      void sendRawRefusal(socket, refusal)
    })
  }

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

/** Texts of the fields of a body by name: numbers such as 1.0 stay as the client wrote them. */
type Fields = ReadonlyMap<string, string>

/** Item of a conversation: what a call and its output have in common, and its text. */
type Item = { type: unknown; call_id: unknown; text: string }

/** A response that the client can continue: the whole conversation, or what follows a stored one. */
interface KeptResponse {
  /** Id of the stored response before the items; `undefined` if the items are all. */
  base: unknown
  items: readonly Item[]
}

/** One message of a client, without what is only for the connection. */
interface Message {
  /** Id of the response that it continues. */
  previous: unknown
  /** New items; `null` for an input that is none, which the tab refuses. */
  items: readonly Item[] | null
  fields: Fields
}

/** A message with the conversation that it continues. */
interface Turn extends KeptResponse {
  previous: unknown
  /** Fields of the request to the tab. */
  fields: Fields
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
    const { generates, ...message } = parseMessage(text)
    try {
      const turn = this.#continue(message)
      if (generates) await this.#generate(turn)
      else await this.#prepare(turn)
    } catch (error) {
      // The conversation may be the reason, so the client has to send it as a whole.
      if (!this.#left.signal.aborted) this.#kept.delete(message.previous)
      throw error
    }
  }

  /** Adds the conversation of a kept response. Throws if a result has no call in it. */
  #continue({ previous, items: added, fields }: Message): Turn {
    const kept = this.#kept.get(previous)
    if (!kept) return { previous, base: previous ?? undefined, items: added ?? [], fields }
    const { base, items: before } = kept
    const items = [...before, ...(added ?? [])]
    if (base === undefined) assertCallsExist(items, before.length)
    const whole = new Map(fields)
    if (added) whole.set('input', `[${items.map((item) => item.text).join()}]`)
    if (base === undefined) whole.delete('previous_response_id')
    else whole.set('previous_response_id', JSON.stringify(base))
    return { previous, base, items, fields: whole }
  }

  async #generate(turn: Turn): Promise<void> {
    const body = encode(new Map([...turn.fields, ['stream', 'true']]))
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
    const body = encode(turn.fields)
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
    const sent: unknown = JSON.parse(writeFields(turn.fields))
    const { snapshot } = new ResponseEncoder(v.parse(responsesBodySchema, sent), {})
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
      const output: unknown[] = Array.isArray(response['output']) ? response['output'] : []
      const added = output.map((item) => toItem(item))
      this.#kept.set(response['id'], { base, items: [...items, ...added] })
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

/** Fields of a message that are not for the tab, or that the bridge sets. */
const OWN_FIELDS = ['type', 'generate', 'background', 'stream', 'stream_options']

/** Parses a message. `generates` is `false` if the client only prepares a request. */
function parseMessage(text: string): Message & { generates: boolean } {
  const { type, generate, background, previous_response_id: previous, input } = parseJson(text)
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
  const fields = new Map(readFields(text))
  for (const name of OWN_FIELDS) fields.delete(name)
  const items = toItems(input, fields.get('input') ?? '')
  return { previous, items, fields, generates: generate !== false }
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

/** Returns the items of an input with this text; `null` for what is no input. */
function toItems(input: unknown, text: string): Item[] | null {
  if (Array.isArray(input)) {
    const texts = splitJson(text)
    return input.map((item, index) => toItem(item, texts[index]))
  }
  if (typeof input === 'string') return [toItem({ type: 'message', role: 'user', content: input })]
  return input === undefined || input === null ? [] : null
}

/** Returns an item. What is none has no type, and the tab refuses it. */
function toItem(json: unknown, text = JSON.stringify(json)): Item {
  const { type, call_id }: Json = isObject(json) ? json : {}
  return { type, call_id, text }
}

/** Yields the names of the fields of a JSON object with the texts of their values. */
function* readFields(text: string): Generator<[name: string, text: string]> {
  for (const member of splitJson(text)) {
    const [{ token: name, index } = { token: '""', index: 0 }] = readTokens(member)
    const value = member.slice(index + name.length)
    yield [JSON.parse(name) as string, value.slice(value.indexOf(':') + 1)]
  }
}

/** Returns the texts between the commas of a JSON object or array. */
function splitJson(text: string): string[] {
  const texts: string[] = []
  let depth = 0
  let start = 0
  for (const { token, index } of readTokens(text)) {
    const isEnd = token === '}' || token === ']'
    if (depth === 1 && (isEnd || token === ',')) texts.push(text.slice(start, index))
    if (token === '{' || token === '[') depth += 1
    if (isEnd) depth -= 1
    if (depth === 1 && '{[,'.includes(token)) start = index + 1
  }
  return texts.length === 1 && texts[0]?.trim() === '' ? [] : texts
}

const writeFields = (fields: Fields): string =>
  `{${[...fields].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`

function encode(fields: Fields): Uint8Array {
  const bytes = new TextEncoder().encode(writeFields(fields))
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
