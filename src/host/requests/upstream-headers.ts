/** Asks the hosting page for the headers of requests to upstream servers. */
import { InoriginError } from '../../error.ts'
import { unlessAborted } from '../../values/unless-aborted.ts'
import type { HostToPage, PageToHost } from '../messages.ts'

/** Time in milliseconds in which the app's function must return the headers. */
const HEADERS_TIMEOUT_MS = 10_000

type HeadersMessage = Extract<PageToHost, { type: 'headers' }>

export interface UpstreamHeaders {
  /** Resolves with the headers for the URL. Rejects with `upstream_headers` if the app fails. */
  request(url: string, signal: AbortSignal): Promise<Record<string, string>>
  receive(message: HeadersMessage): void
}

/** Creates the requests of one worker. The headers are neither stored nor reused. */
export function createUpstreamHeaders(post: (message: HostToPage) => void): UpstreamHeaders {
  const waiting = new Map<number, (message: HeadersMessage) => void>()
  let lastId = 0
  return {
    async request(url, signal) {
      const id = (lastId += 1)
      let timer: ReturnType<typeof setTimeout> | undefined
      const answered = new Promise<HeadersMessage>((resolve) => {
        waiting.set(id, resolve)
        const error = `no answer within ${HEADERS_TIMEOUT_MS / 1000} s`
        const expire = () => resolve({ type: 'headers', id, headers: {}, error })
        timer = setTimeout(expire, HEADERS_TIMEOUT_MS)
      })
      post({ type: 'headers', id, url })
      try {
        const { headers, error } = await unlessAborted(answered, signal)
        if (error === undefined) return headers
        const what = `serve({ upstreams }) returned no headers for ${url}: ${error}.`
        throw new InoriginError('unavailable', what, { code: 'upstream_headers' })
      } finally {
        clearTimeout(timer)
        waiting.delete(id)
      }
    },
    receive: (message) => waiting.get(message.id)?.(message),
  }
}
