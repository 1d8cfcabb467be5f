/** Lends this tab to programs outside the browser: connects it to `inorigin bridge`. */
import { probeDevice, type Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import { computeBackoffMs, sleep } from '../values/promises.ts'
import type { Bridge, BridgeOptions, BridgeState } from '../types/index.ts'
import { disposeKey } from '../values/objects.ts'
import { connect, type Connection, type ConnectionOptions } from './connection.ts'
import { SOCKET_PATH, type TabCapability } from './protocol.ts'

export interface LentServer {
  /** Without a slash at its end. */
  origin: string
  fetch: (request: Request) => Promise<Response>
  /** Signal that is aborted when the server is closed. */
  closing: AbortSignal
}

const FIRST_RECONNECT_MS = 1_000

/**
 * Connects the tab to the command at that URL. Resolves when the command accepted the tab. Rejects
 * with `invalid_request` for invalid arguments, with `bridge_unreachable` if nothing answers, and
 * with `bridge_refused` for a wrong token.
 */
export async function lend(
  url: string | URL,
  options: BridgeOptions,
  server: LentServer,
): Promise<Bridge> {
  const address = toSocketAddress(url)
  const token = parseToken(options.token)
  const ending = new AbortController()
  const close = (): void => ending.abort()
  const { signal: own = ending.signal } = options
  const signal = AbortSignal.any([server.closing, own, ending.signal])
  let state: BridgeState = { status: 'connected', requests: 0, answered: 0 }
  const report: Report = (changed) => {
    const { requests = state.requests } = changed
    const answered = state.answered + Math.max(0, state.requests - requests)
    state = { ...state, ...changed, answered }
    options.onChange?.(state)
  }
  const capability = toCapability(await probeDevice())
  signal.throwIfAborted()
  const { origin, fetch } = server
  const onCount = (requests: number): void => report({ requests })
  const request = { address, token, capability, origin, fetch, onCount, signal }
  const connection = await connect(request)
  report({})
  const closed = stayConnected(connection, request, options.reconnect ?? false, report)
  const finish = (): void => report({ status: 'closed' })
  closed.then(finish, finish)
  return {
    get state() {
      return state
    },
    closed,
    close,
    [disposeKey]: close,
  }
}

type Report = (changed: Partial<Pick<BridgeState, 'status' | 'requests'>>) => void

/**
 * Resolves when the signal ended the connection. If the command ended it, rejects with the error, or
 * connects again until the command is back or refuses the tab.
 */
async function stayConnected(
  first: Connection,
  options: ConnectionOptions,
  reconnects: boolean,
  report: Report,
): Promise<void> {
  for (let { closed } = first; ;) {
    const error = await closed
    if (!error) return
    if (!reconnects || !isTemporary(error)) throw error
    report({ status: 'reconnecting' })
    const next = await reconnect(options)
    if (!next) return
    report({ status: 'connected' })
    closed = next.closed
  }
}

/** Resolves with a connection when the command is back; with `null` if the signal ends the wait. */
async function reconnect(options: ConnectionOptions): Promise<Connection | null> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await sleep(computeBackoffMs(attempts, FIRST_RECONNECT_MS), options.signal)
      return await connect(options)
    } catch (error) {
      if (options.signal.aborted) return null
      if (!isTemporary(error)) throw error
    }
  }
}

/** Returns `false` for a refusal, which would be the same the next time. */
const isTemporary = (error: unknown) =>
  error instanceof InoriginError && error.code === 'bridge_unreachable'

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

function toSocketAddress(url: string | URL): string {
  const parsed = URL.canParse(String(url)) ? new URL(url) : null
  if (parsed && /^(http|ws):$/.test(parsed.protocol) && LOOPBACK.test(parsed.hostname))
    return new URL(SOCKET_PATH, `ws://${parsed.host}`).href
  const what = 'url must be an http URL of this machine, such as http://127.0.0.1:11435'
  throw invalidArgument('url', `${what}, not ${String(url).slice(0, 100)}.`)
}

function parseToken(token: unknown): string {
  if (typeof token === 'string' && /^[\w-]{1,200}$/.test(token)) return token
  throw invalidArgument('token', 'token must be the text that `inorigin bridge` printed.')
}

const invalidArgument = (param: string, message: string) =>
  new InoriginError('invalid_request', message, { code: 'invalid_value', param })

const toCapability = ({ webgpu, memory, cores, wasm }: Capabilities): TabCapability => ({
  gpu: webgpu ? (webgpu.software ? 'software' : 'hardware') : 'none',
  gpuBufferBytes: webgpu?.limits['maxBufferSize'] ?? 0,
  memoryBytes: memory ?? 0,
  threads: wasm.threads ? cores : 1,
})
