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

export class HostThread {
  #setup: PageSetup
  #options: HostThreadOptions
  #worker: Worker
  #stopped = new AbortController()
  #stopStartTimeout: () => void
  /** Ports that are held until the worker has started; `undefined` after that. */
  #held: MessagePort[] | undefined = []
  /** Name of the worker's liveness lock; `null` before it has started, and after its death. */
  #life: string | null = null

  /** Starts the worker. Throws if the browser rejects its script. */
  constructor(setup: PageSetup, options: HostThreadOptions) {
    this.#setup = setup
    this.#options = options
    this.#worker = new Worker(scriptOf(setup), { type: 'module', name: 'inorigin host' })
    const fail = (reason?: string) => options.onFailure(notStarted(setup, reason))
    this.#worker.onmessage = ({ data }: MessageEvent<HostToPage>) => this.#handleMessage(data)
    // In a running worker, an uncaught error affects one request and is already in the console.
    this.#worker.onerror = async ({ message }) => {
      if (!this.#held) return
      // Browsers do not tell why a script did not arrive.
      const isLost = message === undefined && !(await isReachable(scriptOf(setup)))
      if (this.#stopped.signal.aborted) return
      if (isLost) options.onFailure(notKept(setup))
      else fail(message)
    }
    const { isElected, responses } = options
    const { getHeaders: _, ...cloneable } = setup
    const lastEnded = readLastEnded()
    this.#post({ type: 'start', setup: cloneable, isElected, lastEnded, responses })
    this.#stopStartTimeout = startInactivityTimeout(START_TIMEOUT_MS, () =>
      fail(`no answer for ${START_TIMEOUT_MS / 1000} s`),
    )
  }

  /** Passes a port to the worker. Ports that arrive before the worker has started are held. */
  forward(port: MessagePort): void {
    if (!this.#held) return this.#post({ type: 'port' }, [port])
    this.#held.push(port)
    // Without this reply, the requesting side would time out and take this tab for a frozen one.
    port.postMessage({ type: 'starting' } satisfies AnswerMessage)
  }

  /** Terminates the worker. Held ports get the error or, without one, `moved`. */
  stop(error?: InoriginError): void {
    this.#stopped.abort()
    this.#stopStartTimeout()
    this.#worker.terminate()
    if (this.#life) recordEnded(this.#life)
    const answer: AnswerMessage = error
      ? { type: 'error', error: error.toRecord() }
      : { type: 'moved' }
    this.#release((port) => port.postMessage(answer))
  }

  #handleMessage(message: HostToPage): void {
    const { postToServiceWorker, onFailure } = this.#options
    if (message.type === 'pulse') return postToServiceWorker({ type: 'inorigin:pulse' })
    if (message.type === 'downloading') return void requestPersistence()
    if (message.type === 'headers') return void this.#sendHeaders(message.id, message.url)
    if (message.type === 'decode') return void this.#sendSound(message.id, message.file)
    this.#stopStartTimeout()
    if (message.protocol !== PROTOCOL) return onFailure(otherVersion(this.#setup))
    this.#life = message.life
    if (this.#life) {
      const { signal } = this.#stopped
      watchLivenessLock(currentLocks(), this.#life, signal, () => this.#onDeath())
      document.addEventListener('visibilitychange', () => this.#followVisibility(), { signal })
      this.#followVisibility()
    }
    this.#release((port) => this.forward(port))
  }

  #onDeath(): void {
    this.#life = null
    this.#options.onDeath()
  }

  #followVisibility(): void {
    if (this.#life) recordEnded(this.#life, document.visibilityState === 'hidden')
  }

  /** Ends the hold of ports. */
  #release(handle: (port: MessagePort) => void): void {
    const ports = this.#held ?? []
    this.#held = undefined
    for (const port of ports) handle(port)
  }

  async #sendHeaders(id: number, url: string): Promise<void> {
    const found = await this.#setup.getHeaders(url).then(
      (headers) => ({ headers }),
      (error: unknown) => ({ headers: {}, error: messageOf(error) }),
    )
    this.#post({ type: 'headers', id, ...found })
  }

  async #sendSound(id: number, file: Blob): Promise<void> {
    const result = await import('../../predictor/transferable-inputs.ts')
      .then(({ toPageSound }) => toPageSound(file, 'file'))
      .catch((thrown: unknown) => InoriginError.from(thrown).toRecord())
    this.#post({ type: 'decoded', id, result })
  }

  #post(message: PageToHost, transfer: MessagePort[] = []): void {
    this.#worker.postMessage(message, transfer)
  }
}

const scriptOf = ({ assets }: HostSetup): URL => new URL('worker.js', assets)

export function notStarted(setup: HostSetup, reason: string | undefined): InoriginError {
  const why = reason ? ` (${reason})` : ''
  const what = `The worker at ${scriptOf(setup).pathname} could not be started${why}.`
  return new InoriginError('unavailable', `${what} Run \`npx inorigin init <public folder>\`.`, {
    code: 'worker_not_started',
  })
}

/** Timeout in milliseconds for the answer of a web server that may be down. */
const SERVER_TIMEOUT_MS = 3_000

const isReachable = (url: URL): Promise<boolean> =>
  fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(SERVER_TIMEOUT_MS) }).then(
    () => true,
    () => false,
  )

function notKept(setup: HostSetup): InoriginError {
  const what = `The web server does not answer, and this browser has not kept ${scriptOf(setup).pathname}.`
  return new InoriginError('unavailable', `${what} Open the page again when the server answers.`, {
    code: 'worker_not_started',
  })
}

function otherVersion(setup: HostSetup): InoriginError {
  const what = `The worker at ${scriptOf(setup).pathname} and this page use different versions of inorigin.`
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
