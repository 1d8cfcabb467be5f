/** The host's dedicated worker as its page sees it: its start, the ports on their way to it, its end. */
import { InoriginError } from '../error.ts'
import { watchLife } from '../link/life.ts'
import { currentLocks } from '../link/locks.ts'
import {
  PROTOCOL,
  type AnswerMessage,
  type HostSetup,
  type HostToPage,
  type PageToHost,
  type PageToWorker,
} from '../link/protocol.ts'
import { requestPersistence } from '../store/room.ts'

export interface HostThread {
  /** Passes a port on; one that arrives before the worker has started waits for it. */
  pass(port: MessagePort): void
  /** Ends the worker. Ports that wait are answered with the error, else with `moved`. */
  stop(error?: InoriginError): void
}

export interface HostThreadOptions {
  tellWorker(message: PageToWorker): void
  /** The worker could not be started. */
  onFailure(error: InoriginError): void
  /** The worker ended by itself after it had started. */
  onDeath(): void
}

/** Starts the worker. Throws where the browser refuses its script. */
export function startHostThread(setup: HostSetup, options: HostThreadOptions): HostThread {
  const stopped = new AbortController()
  /** Ports that wait for the worker to have started; `undefined` once it has. */
  let waiting: MessagePort[] | undefined = []
  const script = scriptOf(setup)
  const worker = new Worker(script, { type: 'module', name: 'inorigin host' })
  worker.onmessage = (event: MessageEvent<HostToPage>) => hear(event.data)
  // Once it runs, an uncaught error is one request's and is in the console already.
  worker.onerror = (event) => {
    if (waiting) options.onFailure(notStarted(setup, event.message))
  }
  worker.postMessage({ type: 'start', setup } satisfies PageToHost)

  function hear(message: HostToPage): void {
    if (message.type === 'pulse') return options.tellWorker({ type: 'inorigin:pulse' })
    if (message.type === 'downloading') return void requestPersistence()
    if (message.protocol !== PROTOCOL) return options.onFailure(otherVersion(script))
    if (message.life) watchLife(currentLocks(), message.life, stopped.signal, options.onDeath)
    const ports = waiting ?? []
    waiting = undefined
    for (const port of ports) send(port)
  }

  function send(port: MessagePort): void {
    worker.postMessage({ type: 'port' } satisfies PageToHost, [port])
  }

  return {
    pass(port) {
      if (!waiting) return send(port)
      waiting.push(port)
      // The asking side would take the silence for a tab that hangs.
      reply(port, { type: 'starting' })
    },
    stop(error) {
      stopped.abort()
      worker.terminate()
      const last: AnswerMessage = error
        ? { type: 'error', error: error.toRecord() }
        : { type: 'moved' }
      for (const port of waiting ?? []) reply(port, last)
      waiting = undefined
    },
  }
}

const scriptOf = ({ assets }: HostSetup): URL => new URL('worker.js', assets)

function reply(port: MessagePort, message: AnswerMessage): void {
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
  const what = `The worker at ${script.pathname} is of another version than the page's inorigin.`
  return new InoriginError('unavailable', `${what} Run \`npx inorigin init\` again.`, {
    code: 'protocol_mismatch',
  })
}
