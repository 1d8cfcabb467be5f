/**
 * The page half of the host: while this tab holds the lock it owns the dedicated worker, and passes on
 * to it the ports that the service worker sends. It computes nothing and sees no request.
 */
import { InoriginError } from '../error.ts'
import { unreachable, type Link } from '../link/ask.ts'
import {
  PROTOCOL, names,
  type AnswerMessage, type HostSetup, type HostToPage, type PageToHost, type PageToWorker,
  type WorkerToPage,
} from '../link/protocol.ts'
import { requestPersistence } from '../store/room.ts'
import { stand, type Election } from './elect.ts'

export interface HostPage {
  /** Whether this tab hosts at this moment. */
  readonly hosting: boolean
  /** Passes a port to the dedicated worker; rejects when this tab does not host. */
  connect: Link['connect']
  /** Aborts, with the reason, when the dedicated worker cannot be started here. */
  readonly failed: AbortSignal
  /** Gives the lock back and ends the worker. */
  close(): void
}

/** Says something to the service worker, if there is one. */
export type TellWorker = (message: PageToWorker) => void

/**
 * Stands for host. `container` is where the service worker's messages arrive; without one the page
 * hosts for itself alone and at once.
 */
export function hostPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  tellWorker: TellWorker,
): HostPage {
  let worker: Worker | undefined
  const failed = new AbortController()
  let election: Election | undefined

  function start(): void {
    const script = new URL('worker.js', setup.assets)
    let started = false
    worker = new Worker(script, { type: 'module', name: 'inorigin host' })
    worker.onmessage = (event: MessageEvent<HostToPage>) => {
      if (event.data.type === 'pulse') return tellWorker({ type: 'inorigin:pulse' })
      if (event.data.type === 'downloading') return void requestPersistence()
      started = true
      if (event.data.protocol !== PROTOCOL) failed.abort(otherVersion(script))
    }
    // Once it runs, an uncaught error is one request's and is in the console already.
    worker.onerror = (event) => {
      if (!started) failed.abort(notStarted(script, event.message))
    }
    worker.postMessage({ type: 'start', setup } satisfies PageToHost)
    tellWorker({ type: 'inorigin:hosting', protocol: PROTOCOL })
  }

  function stop(): void {
    worker?.terminate()
    worker = undefined
  }

  function connect(port: MessagePort): void {
    failed.signal.throwIfAborted()
    if (!worker) throw unreachable()
    worker.postMessage({ type: 'port' } satisfies PageToHost, [port])
  }

  function onMessage(event: MessageEvent<WorkerToPage>): void {
    const message = event.data
    if (message?.protocol !== PROTOCOL || message.scope !== setup.scope) return
    if (message.type === 'inorigin:steal') return election?.steal()
    if (message.type === 'inorigin:who-hosts') {
      const type = worker ? 'inorigin:hosting' : 'inorigin:standing'
      return tellWorker({ type, protocol: PROTOCOL })
    }
    const port = event.ports[0]
    if (message.type === 'inorigin:request' && port) pass(port)
  }

  function pass(port: MessagePort): void {
    try {
      connect(port)
    } catch (error) {
      const reply: AnswerMessage = failed.signal.aborted
        ? { type: 'error', error: InoriginError.from(error).toRecord() }
        : { type: 'moved' }
      port.postMessage(reply)
    }
  }

  function enter(): void {
    if (!container) return start()
    const candidate = { onElected: start, onDeposed: stop }
    election = stand(names(setup.scope).host, candidate, navigator.locks)
  }

  function leave(): void {
    election?.leave()
    election = undefined
    stop()
  }

  // A page kept for back and forward navigation is frozen: it must not keep the lock meanwhile.
  const onHide = () => leave()
  const onShow = (event: PageTransitionEvent) => {
    if (event.persisted) enter()
  }

  container?.addEventListener('message', onMessage)
  container?.startMessages()
  addEventListener('pagehide', onHide)
  addEventListener('pageshow', onShow)
  enter()

  return {
    get hosting() {
      return worker !== undefined
    },
    failed: failed.signal,
    connect,
    close() {
      container?.removeEventListener('message', onMessage)
      removeEventListener('pagehide', onHide)
      removeEventListener('pageshow', onShow)
      leave()
    },
  }
}

function notStarted(script: URL, reason: string | undefined): InoriginError {
  const what = `The worker at ${script.pathname} could not be started${reason ? ` (${reason})` : ''}.`
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
