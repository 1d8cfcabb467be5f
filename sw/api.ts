/** Answers requests to `/v1` with the host that another tab runs. */
import type { Link, PortEvents } from '../src/link/link.ts'
import { withFailover } from '../src/link/failover.ts'
import { holdLivenessLock } from '../src/link/liveness.ts'
import { remote } from '../src/link/remote.ts'
import { HOST_METHODS } from '../src/types/host.ts'
import type { Host } from '../src/types/index.ts'
import { handle } from '../src/wire/handler.ts'
import type { HostFinder } from './host-finder.ts'
import type { RouteServer } from './routes.ts'

declare const self: ServiceWorkerGlobalScope

/** A request, and the id of the page that sent it. */
type ClientRequest = Pick<FetchEvent, 'request' | 'clientId'>

export interface Api {
  /** Name of the lock that the browser releases when this worker stops. */
  readonly livenessLock: Promise<string>
  /** Number of open requests. */
  readonly open: number
  /** Returns `true` for `/v1` of this origin and scope. A worker also sees requests to other hosts. */
  answers(request: Request): boolean
  respond(sent: ClientRequest): Promise<Response>
  /** Returns what a route of the app asks models with. Its other requests go to the network. */
  serverFor(sent: ClientRequest): RouteServer
}

/** Creates the API below the path `base`. */
export function createApi(hostFinder: HostFinder, base: string): Api {
  // The lock is granted at once.
  const livenessLock = holdLivenessLock(navigator.locks, 'sw')
  let open = 0

  function onOpen(): PortEvents {
    open += 1
    return { onClose: () => (open -= 1), onDeath: hostFinder.forgetHost }
  }

  function answers({ url }: Request): boolean {
    const { origin, pathname } = new URL(url)
    if (origin !== self.location.origin) return false
    return pathname === `${base}v1` || pathname.startsWith(`${base}v1/`)
  }

  async function respond({ request, clientId }: ClientRequest): Promise<Response> {
    const link: Link = {
      connect: hostFinder.connect,
      livenessLock: await livenessLock,
      client: clientId,
      maxAttempts: 3,
      ackTimeoutMs: 2_000,
      onOpen,
    }
    return handle(request, withFailover(remote<Host>(link, HOST_METHODS)), { base })
  }

  return {
    livenessLock,
    get open() {
      return open
    },
    answers,
    respond,
    serverFor: ({ clientId }) => ({
      baseURL: `${self.registration.scope}v1`,
      async fetch(input, init) {
        const request = new Request(input, init)
        return answers(request) ? respond({ request, clientId }) : fetch(request)
      },
    }),
  }
}
