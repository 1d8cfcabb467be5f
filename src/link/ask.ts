/**
 * The asking side of a port that carries one request. It finds a thread that acknowledges the
 * request, and then waits for the result or reads a stream. A stream uses credit, so that a slow
 * reader slows down the writer.
 */
import { InoriginError } from '../error.ts'
import { watchLife } from './life.ts'
import { currentLocks } from './locks.ts'
import { listen } from './silence.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** A connection to the thread that answers. */
export interface Link {
  /** Sends the far end of a channel to that thread. Rejects if there is no such thread. */
  connect(port: MessagePort, attempt: number): void | Promise<void>
  /** Name of the lock that this thread holds while it lives. The other side watches it. */
  life: string | null
  /**
   * Id of the tab that sends the requests. Requests of different tabs take turns. Default: none.
   */
  client?: string
  /** Maximum number of attempts to get an acknowledgment. */
  attempts: number
  /** Timeout in milliseconds for the acknowledgment of a request; `Infinity` means no timeout. */
  patience: number
  /** Maximum number of events that the other side may send ahead of the reader. Default: 64. */
  window?: number
  /** Signal that aborts when the other side ends, with an `InoriginError` as its reason. */
  gone?: AbortSignal
  /** Called when a port is opened for a request of that method. */
  onOpen?(method: string): PortEvents
}

/** Callbacks for the request on one port. */
export interface PortEvents {
  /** Called when the other side has received the request. */
  onAck?(): void
  /** Called when the result has arrived, or when a stream was accepted. */
  onResult?(): void
  /** Called when the port is closed. */
  onClose(): void
}

/** Type of a method: its arguments, its result and its events. */
export interface Method {
  args: readonly unknown[]
  result: unknown
  event: unknown
}

export type Arguments<Methods, Name extends keyof Methods> = (Methods[Name] & Method)['args']
export type Result<Methods, Name extends keyof Methods> = (Methods[Name] & Method)['result']
export type Told<Methods, Name extends keyof Methods> = (Methods[Name] & Method)['event']

export interface AskOptions<Event> {
  key?: string | null
  signal?: AbortSignal | undefined
  /** Timeout in milliseconds between two messages of a stream. Default: no timeout. */
  silence?: number
  /** Called when the other side has received the request. From then on it may be running. */
  onTaken?: () => void
  /** Called for each event before the result. */
  onEvent?: (event: Event) => void
}

/** An accepted stream. */
export interface Reply<Accepted, Event> {
  result: Accepted
  /** Events of the stream. Leaving the loop early cancels the request. */
  events: AsyncIterable<Event>
}

const WINDOW = 64
/** Timeout in milliseconds for the acknowledgment of a worker that is still starting. */
const STARTING_PATIENCE = 20_000

/** Sends a request and resolves with its result. */
export async function call<Methods, Name extends keyof Methods & string>(
  link: Link,
  method: Name,
  args: Arguments<Methods, Name>,
  options: AskOptions<Told<Methods, Name>> = {},
): Promise<Result<Methods, Name>> {
  const conversation = await converse(link, method, args, options)
  try {
    options.onTaken?.()
    for (;;) {
      const message = await conversation.next()
      if (message.type === 'result') return message.value as Result<Methods, Name>
      if (message.type === 'event') options.onEvent?.(message.event as Told<Methods, Name>)
    }
  } finally {
    conversation.close()
  }
}

/** Sends a request for a stream. Resolves when the other side has accepted it. */
export async function stream<Methods, Name extends keyof Methods & string>(
  link: Link,
  method: Name,
  args: Arguments<Methods, Name>,
  options: AskOptions<never> = {},
): Promise<Reply<Result<Methods, Name>, Told<Methods, Name>>> {
  const conversation = await converse(link, method, args, options)
  let accepted: AnswerMessage
  try {
    accepted = await conversation.next()
    if (accepted.type !== 'result')
      throw new InoriginError('internal', 'The host sent events before it accepted the request.')
  } catch (error) {
    conversation.close()
    throw error
  }
  return {
    result: accepted.value as Result<Methods, Name>,
    events: readEvents<Told<Methods, Name>>(conversation, link.window ?? WINDOW, options.silence),
  }
}

async function* readEvents<Event>(
  conversation: Conversation,
  window: number,
  silence: number | undefined,
): AsyncGenerator<Event> {
  let taken = 0
  conversation.send({ type: 'credit', events: window })
  try {
    for (;;) {
      const message = await conversation.next(silence)
      if (message.type === 'end') return
      if (message.type !== 'event') continue
      yield message.event as Event
      taken += 1
      if (taken === window / 2) {
        conversation.send({ type: 'credit', events: taken })
        taken = 0
      }
    }
  } finally {
    conversation.close()
  }
}

/** Creates the error for a host that died or timed out. */
function gone(): InoriginError {
  const why = 'Its tab was closed or frozen, or its worker stopped.'
  const what = `The host of the models stopped while it was answering. ${why} Try again.`
  return new InoriginError('unavailable', what, { code: GONE, retryAfter: 1 })
}

/** An acknowledged port that returns its messages in order. */
interface Conversation {
  send(message: AskMessage): void
  /** Resolves with the next message. Rejects if the request fails or the timeout passes. */
  next(silence?: number): Promise<AnswerMessage>
  /** Closes the port, and cancels the request if it is still running. */
  close(): void
}

/** Sends a request and resolves when it is acknowledged. Retries if nobody can be reached. */

async function converse(
  link: Link,
  method: string,
  args: readonly unknown[],
  options: { key?: string | null; signal?: AbortSignal | undefined },
): Promise<Conversation> {
  const message: AskMessage = {
    type: 'call',
    protocol: PROTOCOL,
    method,
    args,
    key: options.key ?? null,
    client: link.client ?? '',
    life: link.life,
  }
  for (let attempt = 0; ; attempt += 1) {
    if (options.signal?.aborted) throw InoriginError.from(options.signal.reason)
    const channel = new MessageChannel()
    const conversation = openConversation(channel.port1, link, method, options.signal)
    try {
      conversation.send(message)
      await Promise.race([link.connect(channel.port2, attempt), conversation.acknowledged])
      await conversation.acknowledge(link.patience)
      return conversation
    } catch (error) {
      conversation.close()
      const again = error instanceof InoriginError && error.code === UNREACHABLE
      if (!again || attempt + 1 >= link.attempts) throw error
    }
  }
}

const UNREACHABLE = 'host_unreachable'
const GONE = 'host_gone'

/** Returns `true` if a retry may reach another host. */
export function isHostLost(error: unknown): boolean {
  return error instanceof InoriginError && (error.code === UNREACHABLE || error.code === GONE)
}

/** Creates the error for a request that was not acknowledged in time. A retry may succeed. */
export function unreachable(): InoriginError {
  const what = 'The tab that hosts the models did not answer. Try again, or reload that tab.'
  return new InoriginError('unavailable', what, { code: UNREACHABLE, retryAfter: 1 })
}

interface OpenConversation extends Conversation {
  acknowledged: Promise<void>
  /** Waits for the acknowledgment, with a timeout in milliseconds. */
  acknowledge(patience: number): Promise<void>
}

function openConversation(
  port: MessagePort,
  link: Link,
  method: string,
  signal: AbortSignal | undefined,
): OpenConversation {
  const queue: AnswerMessage[] = []
  const closing = new AbortController()
  const events = link.onOpen?.(method)
  let waiting:
    | { resolve: (message: AnswerMessage) => void; reject: (error: unknown) => void }
    | undefined
  let failure: unknown
  let deadline: ReturnType<typeof setTimeout> | undefined
  const ack = { resolve: () => {}, reject: (_reason: unknown) => {} }
  const acknowledged = new Promise<void>((resolve, reject) =>
    Object.assign(ack, { resolve, reject }),
  )
  // Nobody awaits the acknowledgment of a port that is closed before it.
  acknowledged.catch(() => undefined)

  function fail(error: unknown): void {
    if (failure !== undefined || closing.signal.aborted) return
    failure = error
    ack.reject(error)
    waiting?.reject(error)
    waiting = undefined
    close()
  }

  function deliver(message: AnswerMessage): void {
    if (message.type === 'ack') return answered(message.life)
    if (message.type === 'starting') return wait(STARTING_PATIENCE)
    if (message.type === 'moved') return fail(unreachable())
    if (message.type === 'error') return fail(InoriginError.fromRecord(message.error))
    if (message.type === 'result') events?.onResult?.()
    if (waiting) {
      waiting.resolve(message)
      waiting = undefined
    } else {
      queue.push(message)
    }
  }

  function answered(life: string | null): void {
    ack.resolve()
    events?.onAck?.()
    if (life === null) return
    watchLife(currentLocks(), life, closing.signal, () => fail(gone()))
  }

  /** Restarts the timeout of the acknowledgment. */
  function wait(patience: number): void {
    clearTimeout(deadline)
    if (patience !== Infinity) deadline = setTimeout(() => fail(unreachable()), patience)
  }

  function close(): void {
    if (closing.signal.aborted) return
    closing.abort()
    events?.onClose()
    ack.reject(new InoriginError('aborted', 'The request was canceled.'))
    port.postMessage({ type: 'cancel' } satisfies AskMessage)
    port.close()
  }

  const until = { signal: closing.signal }
  signal?.addEventListener('abort', () => fail(InoriginError.from(signal.reason)), until)
  link.gone?.addEventListener('abort', () => fail(link.gone?.reason), until)
  if (link.gone?.aborted) fail(link.gone.reason)
  port.onmessage = (event: MessageEvent<AnswerMessage>) => deliver(event.data)

  return {
    acknowledged,
    acknowledge: async (patience) => {
      if (deadline === undefined) wait(patience)
      await acknowledged.finally(() => clearTimeout(deadline))
    },
    send: (message) => port.postMessage(message),
    next: async (silence) => {
      const message = queue.shift()
      if (message) return message
      if (failure !== undefined) throw failure
      const arriving = new Promise<AnswerMessage>(
        (resolve, reject) => (waiting = { resolve, reject }),
      )
      if (silence === undefined) return arriving
      return arriving.finally(listen(silence, () => fail(gone())))
    },
    close,
  }
}
