/** A request that a page sends while a test does something to the page's origin. */
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { PATHS, type Style } from './generation-cases.ts'

export interface Question {
  style: Style
  /** The body, without `stream`. */
  body: object
  stream: boolean
  /** The function that sends it: the page's own, or that of the server handle. */
  client: 'fetch' | 'server.fetch'
  /**
   * Number of frames after which the page calls `reached`; 0: when the headers have arrived. An
   * answer without a stream has no frames. `null`: never.
   */
  frames: number | null
  /** Number of frames after which the page aborts the request; `null`: never. */
  abortAfter: number | null
}

/** The response that the page received. */
export interface Received {
  status: number
  text: string
  /** Times at which frames with content arrived, in milliseconds since 1970 on a clock that no test moves. */
  arrivals: number[]
  /** `done` if the body ended by itself, `aborted` by the page, else the name and message of the error. */
  end: string
}

interface InPage {
  server: Server
  reached(): void
}

/**
 * Sends the request and resolves when its answer has ended. The page must have a function `reached`,
 * which is called once.
 */
export function ask(page: Page, question: Question): Promise<Received> {
  const { style, body, stream, ...rest } = question
  const fields = {
    ...body,
    ...(stream && { stream }),
    ...(stream && style === 'chat' && { stream_options: { include_usage: true } }),
  }
  return page.evaluate(receive, { path: PATHS[style], fields, ...rest })
}

interface Wish extends Pick<Question, 'client' | 'frames' | 'abortAfter'> {
  path: string
  fields: object
}

/** Runs in the page, so it cannot use anything outside of it. */
async function receive({ path, fields, client, frames, abortAfter }: Wish): Promise<Received> {
  const { server, reached } = globalThis as unknown as InPage
  const aborting = new AbortController()
  const seen: Received = { status: 0, text: '', arrivals: [], end: 'done' }
  let isReached = frames === null
  const follow = (chunk: string): void => {
    seen.text += chunk
    const count = seen.text.split('\n\n').length - 1
    if (/"(delta|partial_json|text|thinking)"/.test(chunk))
      seen.arrivals.push(performance.timeOrigin + performance.now())
    if (!isReached && count >= frames!) {
      isReached = true
      reached()
    }
    if (abortAfter !== null && count >= abortAfter) aborting.abort()
  }
  try {
    const send = client === 'fetch' ? fetch : server.fetch
    const response = await send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
      signal: aborting.signal,
    })
    seen.status = response.status
    follow('')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      follow(value)
    }
  } catch (error) {
    const { name, message } = error as Error
    seen.end = aborting.signal.aborted ? 'aborted' : `${name}: ${message}`
  }
  // An answer can be over before.
  if (!isReached) reached()
  return seen
}

/** Shorter pauses in milliseconds are no interruption. */
const MIN_PAUSE_MS = 100

/**
 * Returns the milliseconds from a moment to the end of the longest pause after it; `null` if the content
 * came without an interruption.
 */
export function findPause(arrivals: readonly number[], since: number): number | null {
  const gaps = arrivals.slice(1).map((time, index) => ({ time, gap: time - arrivals[index]! }))
  const [longest] = gaps.filter(({ time }) => time > since).sort((a, b) => b.gap - a.gap)
  return longest && longest.gap > MIN_PAUSE_MS ? longest.time - since : null
}
