/**
 * The page's view of the host's dedicated worker. It starts the worker, holds ports until the
 * worker has started, and notices when the worker dies.
 */
import { InoriginError, messageOf } from '../../error.ts'
import { currentLocks, START_TIMEOUT_MS, watchLivenessLock } from '../../link/locks.ts'
import { startInactivityTimeout } from '../../link/port.ts'
import { type AnswerMessage, type PageToWorker, PROTOCOL } from '../../link/protocol.ts'
import { requestPersistence } from '../../store/persistence.ts'
import type { HostSetup, HostToPage, PageToHost, ResponseHandover } from '../messages.ts'

/** Parameters of the host, with what only its page can do. */
export interface PageSetup extends HostSetup {
  /** Resolves with the headers that the app adds to requests to an upstream URL. */
  getHeaders(url: string): Promise<Record<string, string>>
}

export interface HostThread {
  /** Passes a port to the worker. Ports that arrive before the worker has started are held. */
  forward(port: MessagePort): void
  /** Terminates the worker. Held ports get the error or, without one, `moved`. */
  stop(error?: InoriginError): void
}

interface HostThreadOptions {
  /** `false` in a page that hosts for itself only. */
  isElected: boolean
  responses: ResponseHandover
  postToServiceWorker(message: PageToWorker): void
  /** Called when the worker could not be started. */
  onFailure(error: InoriginError): void
  /** Called when the worker ended by itself after it had started. */
  onDeath(): void
}

/** Starts the worker. Throws if the browser rejects its script. */
export function startHostThread(
  { getHeaders, ...setup }: PageSetup,
  options: HostThreadOptions,
): HostThread {
  const { isElected, responses, onFailure } = options
  const stopped = new AbortController()
  const script = scriptOf(setup)
  const worker = new Worker(script, { type: 'module', name: 'inorigin host' })
  const ports = createPortQueue((port) => post(worker, { type: 'port' }, [port]))
  const fail = (reason: string) => onFailure(notStarted(setup, reason))
  worker.onmessage = (event: MessageEvent<HostToPage>) => handleMessage(event.data)
  // In a running worker, an uncaught error affects one request and is already in the console.
  worker.onerror = (event) => {
    if (ports.isHolding) fail(event.message)
  }
  post(worker, { type: 'start', setup, isElected, lastEnded: readLastEnded(), responses })
  const stopStartTimeout = startInactivityTimeout(START_TIMEOUT_MS, () =>
    fail(`no answer for ${START_TIMEOUT_MS / 1000} s`),
  )
  /** Name of the worker's liveness lock; `null` before it has started, and after its death. */
  let life: string | null = null

  function handleMessage(message: HostToPage): void {
    if (message.type === 'pulse') return options.postToServiceWorker({ type: 'inorigin:pulse' })
    if (message.type === 'downloading') return void requestPersistence()
    if (message.type === 'headers')
      return void findHeaders(message, getHeaders).then((answer) => post(worker, answer))
    stopStartTimeout()
    if (message.protocol !== PROTOCOL) return onFailure(otherVersion(script))
    life = message.life
    if (life) {
      watchLivenessLock(currentLocks(), life, stopped.signal, onDeath)
      document.addEventListener('visibilitychange', followVisibility, { signal: stopped.signal })
      followVisibility()
    }
    ports.open()
  }

  function onDeath(): void {
    life = null
    options.onDeath()
  }

  function followVisibility(): void {
    if (life) recordEnded(life, document.visibilityState === 'hidden')
  }

  return {
    forward: ports.forward,
    stop(error) {
      stopped.abort()
      stopStartTimeout()
      worker.terminate()
      if (life) recordEnded(life)
      ports.close(error ? { type: 'error', error: error.toRecord() } : { type: 'moved' })
    },
  }
}

/** Ports to a worker, which are held until it has started. */
interface PortQueue extends Pick<HostThread, 'forward'> {
  readonly isHolding: boolean
  /** Passes the held ports on, and later ones at once. */
  open(): void
  /** Answers the held ports. */
  close(answer: AnswerMessage): void
}

function createPortQueue(send: (port: MessagePort) => void): PortQueue {
  /** Held ports; `undefined` once the queue is open or closed. */
  let held: MessagePort[] | undefined = []
  const release = (handle: (port: MessagePort) => void): void => {
    const ports = held ?? []
    held = undefined
    for (const port of ports) handle(port)
  }
  return {
    get isHolding() {
      return held !== undefined
    },
    forward(port) {
      if (!held) return send(port)
      held.push(port)
      // Without this reply, the requesting side would time out and take this tab for a frozen one.
      port.postMessage({ type: 'starting' } satisfies AnswerMessage)
    },
    open: () => release(send),
    close: (answer) => release((port) => port.postMessage(answer)),
  }
}

async function findHeaders(
  { id, url }: { id: number; url: string },
  getHeaders: PageSetup['getHeaders'],
): Promise<PageToHost> {
  const found = await getHeaders(url).then(
    (headers) => ({ headers }),
    (error: unknown) => ({ headers: {}, error: messageOf(error) }),
  )
  return { type: 'headers', id, ...found }
}

const scriptOf = ({ assets }: HostSetup): URL => new URL('worker.js', assets)

function post(worker: Worker, message: PageToHost, transfer: MessagePort[] = []): void {
  worker.postMessage(message, transfer)
}

export function notStarted(setup: HostSetup, reason: string | undefined): InoriginError {
  const why = reason ? ` (${reason})` : ''
  const what = `The worker at ${scriptOf(setup).pathname} could not be started${why}.`
  return new InoriginError('unavailable', `${what} Run \`npx inorigin init <public folder>\`.`, {
    code: 'worker_not_started',
  })
}

function otherVersion(script: URL): InoriginError {
  const what = `The worker at ${script.pathname} and this page use different versions of inorigin.`
  return new InoriginError('unavailable', `${what} Run \`npx inorigin init\` again.`, {
    code: 'protocol_mismatch',
  })
}

/**
 * Names the last host that ended in order, or that was hidden. A crash leaves no trace here, so the
 * next host can tell them apart. It uses `localStorage`, the only storage of a page that is written
 * before a page that closes is gone.
 */
const KEY = 'inorigin:ended'

/** Returns the name of the liveness lock of that host; `null` if there is none. */
function readLastEnded(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    // The user blocks the storage of this site, so crashes are not recorded either.
    return null
  }
}

/**
 * Records the end of the host with that liveness lock. `isOver` is `false` if a hidden tab, which
 * browsers may end at any time, is visible again.
 */
function recordEnded(life: string, isOver = true): void {
  try {
    if (isOver) localStorage.setItem(KEY, life)
    else if (localStorage.getItem(KEY) === life) localStorage.removeItem(KEY)
  } catch {
    // As above.
  }
}
