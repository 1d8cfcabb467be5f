/**
 * The page's view of the host's dedicated worker. It starts the worker, holds ports until the
 * worker has started, and notices when the worker dies.
 */
import { InoriginError, messageOf } from '../../error.ts'
import { startInactivityTimeout } from '../../link/inactivity.ts'
import { START_TIMEOUT_MS, watchLivenessLock } from '../../link/liveness.ts'
import { currentLocks } from '../../link/locks.ts'
import { PROTOCOL, type AnswerMessage, type PageToWorker } from '../../link/protocol.ts'
import { requestPersistence } from '../../store/quota.ts'
import type { HostSetup, HostToPage, PageToHost, ResponseHandover } from '../messages.ts'
import { readLastEnded, recordEnded } from './last-ended.ts'

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

export interface HostThreadOptions {
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
  const stopped = new AbortController()
  /** Ports that are held until the worker has started; `undefined` after that. */
  let held: MessagePort[] | undefined = []
  const script = scriptOf(setup)
  const worker = new Worker(script, { type: 'module', name: 'inorigin host' })
  worker.onmessage = (event: MessageEvent<HostToPage>) => handleMessage(event.data)
  // In a running worker, an uncaught error affects one request and is already in the console.
  worker.onerror = (event) => {
    if (held) options.onFailure(notStarted(setup, event.message))
  }
  const { isElected, responses } = options
  const lastEnded = readLastEnded()
  const start: PageToHost = { type: 'start', setup, isElected, lastEnded, responses }
  worker.postMessage(start)
  const stopStartTimeout = startInactivityTimeout(START_TIMEOUT_MS, () =>
    options.onFailure(notStarted(setup, `no answer for ${START_TIMEOUT_MS / 1000} s`)),
  )
  /** Name of the worker's liveness lock; `null` before it has started, and after its death. */
  let life: string | null = null

  function handleMessage(message: HostToPage): void {
    if (message.type === 'pulse') return options.postToServiceWorker({ type: 'inorigin:pulse' })
    if (message.type === 'downloading') return void requestPersistence()
    if (message.type === 'headers') return void sendHeaders(message)
    stopStartTimeout()
    if (message.protocol !== PROTOCOL) return options.onFailure(otherVersion(script))
    life = message.life
    if (life) {
      watchLivenessLock(currentLocks(), life, stopped.signal, onDeath)
      document.addEventListener('visibilitychange', followVisibility, { signal: stopped.signal })
      followVisibility()
    }
    const ports = held ?? []
    held = undefined
    for (const port of ports) send(port)
  }

  async function sendHeaders({ id, url }: { id: number; url: string }): Promise<void> {
    const found = await getHeaders(url).then(
      (headers) => ({ headers }),
      (error: unknown) => ({ headers: {}, error: messageOf(error) }),
    )
    worker.postMessage({ type: 'headers', id, ...found } satisfies PageToHost)
  }

  function onDeath(): void {
    life = null
    options.onDeath()
  }

  function followVisibility(): void {
    if (life) recordEnded(life, document.visibilityState === 'hidden')
  }

  function send(port: MessagePort): void {
    worker.postMessage({ type: 'port' } satisfies PageToHost, [port])
  }

  return {
    forward(port) {
      if (!held) return send(port)
      held.push(port)
      // Without this reply, the requesting side would time out and take this tab for a frozen one.
      post(port, { type: 'starting' })
    },
    stop(error) {
      stopped.abort()
      stopStartTimeout()
      worker.terminate()
      if (life) recordEnded(life)
      const last: AnswerMessage = error
        ? { type: 'error', error: error.toRecord() }
        : { type: 'moved' }
      for (const port of held ?? []) post(port, last)
      held = undefined
    },
  }
}

const scriptOf = ({ assets }: HostSetup): URL => new URL('worker.js', assets)

function post(port: MessagePort, message: AnswerMessage): void {
  port.postMessage(message)
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
