/** The link of one server to its host, and the candidacy of its page. */
import type { PageControl } from './control.ts'
import type { PageSetup } from './host/tab/host-thread.ts'
import { hostPage, type HostPage } from './host/tab/page.ts'
import { type Link, unreachable } from './link/link.ts'
import { holdPageLock } from './link/page-lock.ts'
import { PROTOCOL, type PageToWorker } from './link/protocol.ts'
import { postToWorker } from './register.ts'

/** Number of attempts to reach a host: one may be starting, or the next tab may be taking over. */
const HOST_ATTEMPTS = 3
const HOST_ACK_TIMEOUT_MS = 8_000

export interface Hosting {
  /** Link to the host, which may be this page. */
  readonly link: Link
  /** `true` if this page hosts for itself only. */
  readonly isAlone: boolean
  /** `true` if the host is in this page. */
  readonly isHere: boolean
  /** Enters the election, or hosts for this page only without a control that is shared. */
  start(control: PageControl | undefined): Promise<void>
  /** Takes part with the locks that the page has after control was regained. */
  followControl(): Promise<void>
  close(): void
}

export function createHosting(setup: PageSetup): Hosting {
  let control: PageControl | undefined
  let page: HostPage | undefined
  let isAlone = false

  const link: Link = {
    /** The service worker forwards the port to the hosting tab, if that is another one. */
    connect(port, attempt) {
      if (!page) throw unreachable()
      if (page.hosting || !control?.isShared) return page.connect(port, attempt)
      const message: PageToWorker = { type: 'inorigin:forward', protocol: PROTOCOL, attempt }
      control.registration.active?.postMessage(message, [port])
    },
    livenessLock: null,
    client: crypto.randomUUID(),
    maxAttempts: HOST_ATTEMPTS,
    ackTimeoutMs: HOST_ACK_TIMEOUT_MS,
  }

  function open(): void {
    page = hostPage(setup, isAlone ? undefined : navigator.serviceWorker, (message) => {
      if (control) postToWorker(control.registration, message)
    })
  }

  return {
    link,
    get isAlone() {
      return isAlone
    },
    get isHere() {
      return page?.hosting ?? false
    },
    async start(taken) {
      control = taken
      isAlone = !taken?.isShared
      open()
      link.livenessLock = await holdPageLock()
    },
    async followControl() {
      link.livenessLock = await holdPageLock()
      if (!isAlone) return page?.followLocks()
      // Open streams of the host that was for this page only continue on the host of all pages.
      isAlone = false
      page?.close()
      open()
    },
    close: () => page?.close(),
  }
}
