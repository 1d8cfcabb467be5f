/** Refuses requests that no program of the user meant to send. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { InoriginError } from '../../error.ts'
import { shorten } from '../../values/text.ts'
import { findApiKey } from '../../wire/http.ts'

export interface GuardOptions {
  token: string
  /** `true` if clients must send the token as their API key. */
  requireKey: boolean
  origins: readonly string[]
}

/**
 * Throws `permission` for a `Host` that is not this machine: a web page can point a name of its own
 * at 127.0.0.1 (DNS rebinding), and would then be of the same origin.
 */
export function assertHost({ headers, socket }: IncomingMessage): void {
  const { host = '' } = headers
  const port = socket.localPort
  const named = /^(127\.0\.0\.1|localhost)(?::(\d+))?$/i.exec(host)
  if (named && (named[2] ?? '80') === String(port)) return
  const what = `The header Host is "${shorten(host)}", not this machine.`
  throw new InoriginError('permission', `${what} Use http://127.0.0.1:${port}.`)
}

/**
 * Returns the CORS headers of a response, none for a request that comes from no web page.
 *
 * @throws InoriginError `permission` for a page whose origin is not allowed.
 */
export function checkOrigin(
  { headers }: IncomingMessage,
  { origins }: GuardOptions,
): Record<string, string> {
  const { origin } = headers
  // Images and scripts of other sites send no origin.
  const site = headers['sec-fetch-site'] ?? 'none'
  if (origin === undefined && (site === 'none' || site === 'same-origin')) return {}
  if (origin !== undefined && origins.includes(origin))
    return {
      'access-control-allow-origin': origin,
      'access-control-expose-headers': '*',
      vary: 'origin',
    }
  const what = `${origin === undefined ? 'This web page' : shorten(origin)} must not use the bridge.`
  const todo = 'Start `inorigin bridge --origin <origin>` to allow the pages of an origin.'
  throw new InoriginError('permission', `${what} ${todo}`)
}

/** Returns the headers that answer a preflight request of an allowed page. */
export const toPreflightHeaders = ({ headers }: IncomingMessage): Record<string, string> => ({
  'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
  'access-control-allow-headers': headers['access-control-request-headers'] ?? '',
  'access-control-max-age': '600',
})

/** Throws `authentication` if clients need the token and this one does not send it. */
export function assertKey(headers: Headers, { token, requireKey }: GuardOptions): void {
  if (!requireKey || isToken(findApiKey(headers) ?? '', token)) return
  const what = 'Invalid API key. Send the token that `inorigin bridge` printed as the API key.'
  throw new InoriginError('authentication', what, { code: 'invalid_api_key' })
}

/** Compares in a time that does not depend on the text. */
export function isToken(text: string, token: string): boolean {
  const hash = (each: string) => createHash('sha256').update(each).digest()
  return timingSafeEqual(hash(text), hash(token))
}
