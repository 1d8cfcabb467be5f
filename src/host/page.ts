/**
 * The page half of the host: while this tab holds the lock it owns the dedicated worker, and passes on
 * to it the ports that the service worker sends. It computes nothing and sees no request.
 */
import { InoriginError } from '../error.ts'
import { unreachable, type Link } from '../link/ask.ts'
import { currentLocks } from '../link/locks.ts'
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
  /** Passes a port to the dedicated worker; throws `host_unreachable` when this tab does not host. */
  connect: Link['connect']
  /** Stands anew, with a new worker, where the locks of this page are others than when it did before. */
  followLocks(): void
  /** Gives the lock back and ends the worker, once everyone who opened it has closed it. */
  close(): void
}

/** Says something to the service worker, if there is one. */
export type TellWorker = (message: PageToWorker) => void

/** Milliseconds until a tab whose worker could not be started stands for host again. */
const STAND_AGAIN = 10_000

/** What this page already does, by scope: two servers of one page are one candidate. */
const open = new Map<string, { page: HostPage; users: number }>()

/**
 * Stands for host. `container` is where the service worker's messages arrive; without one the page
 * hosts for itself alone and at once. The options are those of the first who opens it in this page.
 */
export function hostPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  tellWorker: TellWorker,
): HostPage {
  const key = `${container ? 'shared' : 'alone'} ${setup.scope}`
  const entry = open.get(key) ?? { page: createPage(setup, container, tellWorker), users: 0 }
  open.set(key, entry)
  entry.users += 1
  let closed = false
  return {
    get hosting() {
      return entry.page.hosting
    },
    connect: entry.page.connect,
    followLocks: entry.page.followLocks,
    close() {
      if (closed) return
      closed = true
      entry.users -= 1
      if (entry.users > 0) return
      open.delete(key)
      entry.page.close()
    },
  }
}

function createPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  tellWorker: TellWorker,
): HostPage {
  let worker: Worker | undefined
  let election: Election | undefined
  let again: ReturnType<typeof setTimeout> | undefined
  /** Those in which it stands. */
  let locks: LockManager | undefined
  /** Ports that wait for the worker to have started; `undefined` once it has. */
  let waiting: MessagePort[] | undefined

  function start(): void {
    waiting = []
    const script = new URL('worker.js', setup.assets)
    try {
      worker = new Worker(script, { type: 'module', name: 'inorigin host' })
      worker.onmessage = (event: MessageEvent<HostToPage>) => hear(event.data, script)
      // Once it runs, an uncaught error is one request's and is in the console already.
      worker.onerror = (event) => {
        if (waiting) fail(notStarted(script, event.message))
      }
      worker.postMessage({ type: 'start', setup } satisfies PageToHost)
      tellWorker({ type: 'inorigin:hosting', protocol: PROTOCOL })
    } catch (error) {
      fail(notStarted(script, InoriginError.from(error).message))
    }
  }

  function hear(message: HostToPage, script: URL): void {
    if (message.type === 'pulse') return tellWorker({ type: 'inorigin:pulse' })
    if (message.type === 'downloading') return void requestPersistence()
    if (message.protocol !== PROTOCOL) return fail(otherVersion(script))
    const ports = waiting ?? []
    waiting = undefined
    for (const port of ports) pass(port)
  }

  /** Tells who waits, lets the next tab in line try, and lines up again later. */
  function fail(error: InoriginError): void {
    for (const port of waiting ?? []) reply(port, { type: 'error', error: error.toRecord() })
    waiting = undefined
    stop()
    election?.leave()
    again = setTimeout(enter, STAND_AGAIN)
  }

  function stop(): void {
    worker?.terminate()
    worker = undefined
    for (const port of waiting ?? []) reply(port, { type: 'moved' })
    waiting = undefined
  }

  function pass(port: MessagePort): void {
    if (!waiting) return worker?.postMessage({ type: 'port' } satisfies PageToHost, [port])
    waiting.push(port)
    // Whoever asks would take the silence for a tab that hangs.
    reply(port, { type: 'starting' })
  }

  function connect(port: MessagePort): void {
    if (!worker) throw unreachable()
    pass(port)
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
    if (message.type !== 'inorigin:request' || !port) return
    if (worker) pass(port)
    else reply(port, { type: 'moved' })
  }

  function enter(): void {
    clearTimeout(again)
    if (!container) return start()
    const candidate = { onElected: start, onDeposed: stop }
    locks = currentLocks()
    election = stand(names(setup.scope).host, candidate, locks)
  }

  function leave(): void {
    clearTimeout(again)
    election?.leave()
    election = undefined
    stop()
  }

  function followLocks(): void {
    if (!container || locks === currentLocks()) return
    leave()
    enter()
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
    connect,
    followLocks,
    close() {
      container?.removeEventListener('message', onMessage)
      removeEventListener('pagehide', onHide)
      removeEventListener('pageshow', onShow)
      leave()
    },
  }
}

function reply(port: MessagePort, message: AnswerMessage): void {
  port.postMessage(message)
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
