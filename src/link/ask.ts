/**
 * The asking side of one request on one port: finds someone who acknowledges, then waits for a result
 * or reads a stream with credit, so that a slow reader slows the writer down.
 */
import { InoriginError } from '../error.ts'
import { watchLife } from './life.ts'
import { currentLocks } from './locks.ts'
import { listen } from './silence.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** A way to whoever answers. */
export interface Link {
  /** Hands over the far end of a channel. Rejects when nobody could be found. */
  connect(port: MessagePort, attempt: number): void | Promise<void>
  /** Lock held by this thread while it lives, so that the other side learns of its death. */
  life: string | null
  /** Who asks, where several do: a tab. Requests of different clients take turns. Default: nobody. */
  client?: string
  /** How many times to look for someone who acknowledges. */
  attempts: number
  /** Milliseconds from a port handed over to its acknowledgement; `Infinity` for as long as it takes. */
  patience: number
  /** Events of a stream the other side may be ahead of its reader. Default: 64. */
  window?: number
  /** Aborts, with an `InoriginError` as reason, when the other side is known to be gone. */
  gone?: AbortSignal
  /** Called when a port opens for a request of that method. */
  onOpen?(method: string): PortEvents
}

/** Hears what becomes of the request on one port. */
export interface PortEvents {
  /** The other side has the request. */
  onAck?(): void
  /** The result has arrived; for a stream, its acceptance. */
  onResult?(): void
  onClose(): void
}

/** A kind of request: its arguments, its result and what it tells on the way. */
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
  /** Milliseconds without a message after which a stream's other side counts as gone. Default: none. */
  silence?: number
  /** The other side has it: from here on it may be under way. */
  onTaken?: () => void
  onEvent?: (event: Event) => void
}

/** An accepted stream. */
export interface Reply<Accepted, Event> {
  result: Accepted
  /** Leaving the loop early cancels the work at the other end. */
  events: AsyncIterable<Event>
}

const WINDOW = 64
/** Milliseconds for a worker that is known to be starting. */
const STARTING_PATIENCE = 20_000

/** Asks for one result. */
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

/** Asks for a stream; resolves once the other side has accepted. */
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
      throw new InoriginError('internal', 'The host sent events before it accepted.')
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

/** The responder died or timed out. */
function gone(): InoriginError {
  const why = 'Its tab was closed or frozen, or its worker stopped.'
  const what = `The host of the models ended while it was answering. ${why} Try again.`
  return new InoriginError('unavailable', what, { code: GONE, retryAfter: 1 })
}

/** An acknowledged port with its messages in order. */
interface Conversation {
  send(message: AskMessage): void
  /** The next message; rejects with what ended the conversation, as silence does that lasts too long. */
  next(silence?: number): Promise<AnswerMessage>
  /** Ends it; what is still running at the other end is cancelled. */
  close(): void
}

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

/** Whether asking again may find another host. */
export function isHostLost(error: unknown): boolean {
  return error instanceof InoriginError && (error.code === UNREACHABLE || error.code === GONE)
}

/** Nobody took the port in time; another attempt may find someone. */
export function unreachable(): InoriginError {
  const what = 'The tab that hosts the models did not answer. Try again, or reload that tab.'
  return new InoriginError('unavailable', what, { code: UNREACHABLE, retryAfter: 1 })
}

interface OpenConversation extends Conversation {
  acknowledged: Promise<void>
  /** Waits for the acknowledgement, but not for ever. */
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
  // A conversation that is closed before it was acknowledged has nobody left to tell.
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

  /** Waits that long for the acknowledgement, from now. */
  function wait(patience: number): void {
    clearTimeout(deadline)
    if (patience !== Infinity) deadline = setTimeout(() => fail(unreachable()), patience)
  }

  function close(): void {
    if (closing.signal.aborted) return
    closing.abort()
    events?.onClose()
    ack.reject(new InoriginError('aborted', 'The request was cancelled.'))
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
