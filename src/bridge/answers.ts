/** The tab's end of the bridge: answers the requests that arrive over the WebSocket. */
import { messageOf } from '../error.ts'
import { unlessAborted } from '../values/unless-aborted.ts'
import { readStream } from '../values/read-stream.ts'
import {
  WINDOW_BYTES,
  splitIntoPieces,
  type CreditMessage,
  type Piece,
  type RequestMessage,
  type ServerMessage,
  type TabMessage,
} from './protocol.ts'

export interface AnswersOptions {
  /** Origin of the server in this page, without a slash at its end. */
  origin: string
  fetch: (request: Request) => Promise<Response>
  send(message: TabMessage): void
  sendPiece(piece: Piece): void
  /** Called with the number of open requests whenever a request begins or ends. */
  onCount(open: number): void
}

/** Answers of one connection. */
export interface Answers {
  /** Handles a message. Returns `false` if it breaks the protocol. */
  receive(message: ServerMessage | Piece): boolean
  /** Cancels all open requests. */
  cancelAll(): void
}

interface OpenRequest {
  message: RequestMessage
  abort: AbortController
  /** Body so far; `filled` is the number of its bytes that have arrived. */
  body: Uint8Array<ArrayBuffer>
  filled: number
  /** Bytes of the response that may be sent. */
  credit: number
  /** Ends a wait for credit. */
  onCredit: () => void
}

export function createAnswers(options: AnswersOptions): Answers {
  const open = new Map<number, OpenRequest>()

  async function answer(request: OpenRequest): Promise<void> {
    const { id } = request.message
    try {
      await sendAnswer(request, options)
      options.send({ type: 'end', id })
    } catch (error) {
      // A canceled request has nobody left who would read this.
      if (!request.abort.signal.aborted) {
        options.send({ type: 'fail', id, message: messageOf(error) })
      }
    }
    forget(id)
  }

  function forget(id: number): void {
    if (open.delete(id)) options.onCount(open.size)
  }

  function cancel(id: number): void {
    open.get(id)?.abort.abort()
    forget(id)
  }

  function begin(message: RequestMessage): boolean {
    if (open.has(message.id)) return false
    const request = createOpenRequest(message)
    open.set(message.id, request)
    options.onCount(open.size)
    if (message.bodyBytes === 0) void answer(request)
    return true
  }

  /** Handles a message about a request that is open. */
  function update(request: OpenRequest, message: Piece | CreditMessage): boolean {
    if ('type' in message) return addCredit(request, message.bytes)
    if (!addPiece(request, message.bytes)) return false
    if (request.filled === request.body.byteLength) void answer(request)
    return true
  }
  return {
    receive(message) {
      if (!('type' in message) || message.type === 'credit') {
        const request = open.get(message.id)
        // The rest of a body, and credit, may arrive after the request was canceled.
        return request === undefined || update(request, message)
      }
      if (message.type === 'request') return begin(message)
      if (message.type === 'cancel') cancel(message.id)
      if (message.type === 'ping') options.send({ type: 'pong' })
      return true
    },
    cancelAll() {
      for (const id of open.keys()) cancel(id)
    },
  }
}

function createOpenRequest(message: RequestMessage): OpenRequest {
  return {
    message,
    abort: new AbortController(),
    body: new Uint8Array(message.bodyBytes),
    filled: 0,
    credit: WINDOW_BYTES,
    onCredit: () => {},
  }
}

/** Returns `false` for more bytes than the request has. */
function addPiece(request: OpenRequest, bytes: Uint8Array): boolean {
  if (request.filled + bytes.byteLength > request.body.byteLength) return false
  request.body.set(bytes, request.filled)
  request.filled += bytes.byteLength
  return true
}

/** Returns `false` for more credit than a window. */
function addCredit(request: OpenRequest, bytes: number): boolean {
  request.credit += bytes
  request.onCredit()
  return request.credit <= WINDOW_BYTES
}

/** Resolves when the whole response was sent. Rejects when the request is canceled or fails. */
async function sendAnswer(request: OpenRequest, options: AnswersOptions): Promise<void> {
  const { message, abort, body } = request
  const { id, method, path, headers } = message
  const { signal } = abort
  const asked = new Request(options.origin + path, {
    method,
    headers,
    body: body.byteLength > 0 ? body : null,
    signal,
  })
  // `/v1/../account` would be a page of the app, fetched with the cookies of its user.
  if (!asked.url.startsWith(`${options.origin}/v1/`)) throw new Error('The path is not in /v1/.')
  const response = await options.fetch(asked)
  signal.throwIfAborted()
  options.send({ type: 'response', id, status: response.status, headers: [...response.headers] })
  if (!response.body) return
  // The next piece is read when this one was sent, so a client that stops reading stops the model.
  for await (const bytes of readStream(response.body)) {
    for (const piece of splitIntoPieces(bytes)) {
      while (request.credit < piece.byteLength) {
        await unlessAborted(new Promise<void>((resolve) => (request.onCredit = resolve)), signal)
      }
      request.credit -= piece.byteLength
      options.sendPiece({ id, bytes: piece })
    }
  }
  signal.throwIfAborted()
}
