/** Requests of a page: with their whole answer, or while a test does something to the page's origin. */
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import type { AnyPage } from './any-page.ts'
import { PATHS, type Style } from './generation-cases.ts'

export const GUIDE = '@inorigin/guide'
export const CHAT = '/v1/chat/completions'
export const MESSAGES = '/v1/messages'

/** The function that sends a request: the page's own, or that of the server handle. */
export type Sender = 'fetch' | 'server.fetch'

export interface Answer {
  status: number
  headers: Record<string, string>
  text: string
}

/** The response that the page received so far. */
export interface Streamed {
  /** Zero until the headers have arrived. */
  status: number
  text: string
  /** Times at which frames with content arrived, in milliseconds since 1970 on a clock that no test moves. */
  arrivals: number[]
  /**
   * `done` if the body ended by itself, `aborted` by the page, else the name and message of the error.
   * Absent while the page reads.
   */
  end?: string
}

export type Received = Required<Streamed>

interface InPage {
  server: Server
  reached(): void
  streamed: Record<string, Streamed>
  aborts: Record<string, AbortController>
}

/** Resolves with the response to a request of the page. With a body, the method is POST. */
export function fetchIn(
  page: AnyPage,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  sender: Sender = 'fetch',
): Promise<Answer> {
  return page.evaluate(
    async ([url, json, extra, name]) => {
      const send = name === 'fetch' ? fetch : (globalThis as unknown as InPage).server.fetch
      const init: RequestInit =
        json === undefined
          ? { headers: extra }
          : {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...extra },
              body: JSON.stringify(json),
            }
      const response = await send(url, init)
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        text: await response.text(),
      }
    },
    [path, body, headers, sender] as const,
  )
}

/** Returns a `fetch` for paths whose requests the page sends. Its responses come as a whole. */
export const fetchThrough =
  (page: AnyPage) =>
  async (path: string, { body }: RequestInit = {}): Promise<Response> => {
    const json: unknown = typeof body === 'string' ? JSON.parse(body) : undefined
    const { status, headers, text } = await fetchIn(page, path, json)
    return new Response(text, { status, headers })
  }

/** Asks the guide in eight tokens. Resolves with its text, or with the status and body of a refusal. */
export async function askGuide(page: AnyPage, sender?: Sender): Promise<string> {
  const body = {
    model: GUIDE,
    messages: [{ role: 'user', content: 'What is inorigin?' }],
    temperature: 0,
    max_tokens: 8,
  }
  const { status, text } = await fetchIn(page, CHAT, body, {}, sender)
  // A load that fails late ends a body of status 200 with the error.
  return JSON.parse(text).choices?.[0].message.content ?? `${status} ${text}`
}

/** Asks the guide for a message of four tokens. */
export const askBriefly = (page: AnyPage, sender?: Sender): Promise<Answer> => {
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = { model: GUIDE, temperature: 0, max_tokens: 4, messages }
  return fetchIn(page, MESSAGES, body, {}, sender)
}

export interface Question {
  style: Style
  /** The body, without `stream`. */
  body: object
  stream: boolean
  client: Sender
  /**
   * Number of frames after which the page calls `reached`, or several of them; 0: when the headers have
   * arrived. An answer without a stream has no frames. `null`: never.
   */
  frames: number | readonly number[] | null
  /** Number of frames after which the page aborts the request; `null`: never. */
  abortAfter: number | null
}

/**
 * Sends the request and resolves when its answer has ended. The page must have a function `reached`,
 * which is called as often as there are numbers of frames.
 */
export function ask(page: Page, question: Question): Promise<Received> {
  const { style, body, stream, client, frames, abortAfter } = question
  const fields = {
    ...body,
    ...(stream && { stream }),
    ...(stream && style === 'chat' && { stream_options: { include_usage: true } }),
  }
  const wish = { name: null, path: PATHS[style], fields, client, abortAfter }
  return page.evaluate(receive, { ...wish, frames: [frames ?? []].flat() }) as Promise<Received>
}

/** Begins a streamed answer of the model `tag`; `name` is what the test calls it. Default: a message. */
export async function beginStream(
  page: AnyPage,
  name: string,
  tag: string,
  fields: object = {},
  path = MESSAGES,
): Promise<void> {
  await page.evaluate(receive, {
    name,
    path,
    fields: {
      model: tag,
      max_tokens: 1000,
      stream: true,
      messages: [{ role: 'user', content: 'Tell me all about it' }],
      ...fields,
    },
    client: 'fetch' as Sender,
    frames: [] as number[],
    abortAfter: null as number | null,
  })
}

interface Wish {
  /** Key under which the page keeps the response. `null` to wait for its end. */
  name: string | null
  path: string
  fields: object
  client: Sender
  frames: readonly number[]
  abortAfter: number | null
}

/** Runs in the page, so it cannot use anything outside of it. */
async function receive({ name, path, fields, client, ...when }: Wish): Promise<Streamed> {
  const shared = globalThis as unknown as InPage
  const aborting = new AbortController()
  const seen: Streamed = { status: 0, text: '', arrivals: [] }
  if (name !== null) {
    shared.streamed = { ...shared.streamed, [name]: seen }
    shared.aborts = { ...shared.aborts, [name]: aborting }
  }
  const left = [...when.frames]
  const reach = (): void => {
    left.shift()
    shared.reached()
  }
  const follow = (chunk: string): void => {
    seen.text += chunk
    const count = seen.text.split('\n\n').length - 1
    if (/"(delta|partial_json|text|thinking)"/.test(chunk))
      seen.arrivals.push(performance.timeOrigin + performance.now())
    while (left.length > 0 && count >= left[0]!) reach()
    if (when.abortAfter !== null && count >= when.abortAfter) aborting.abort()
  }
  const read = async (): Promise<void> => {
    try {
      const send = client === 'fetch' ? fetch : shared.server.fetch
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
      seen.end = 'done'
    } catch (error) {
      const { name: kind, message } = error as Error
      seen.end = aborting.signal.aborted ? 'aborted' : `${kind}: ${message}`
    }
    // An answer can be over before.
    while (left.length > 0) reach()
  }
  const reading = read()
  if (name === null) await reading
  return seen
}

/** Fields of a message whose answer is too long to end before it is ended. */
export const ENDLESS = {
  temperature: 0,
  output_config: {
    format: {
      type: 'json_schema',
      schema: { type: 'array', minItems: 200, items: { type: 'boolean' } },
    },
  },
}

/** Begins an endless message of the guide, and resolves when the first of its text has come. */
export async function beginEndless(page: AnyPage, name: string): Promise<void> {
  await beginStream(page, name, GUIDE, ENDLESS)
  await streamHas(page, name, 'content_block_delta')
}

/** The whole text of that message. */
export async function readEndless(page: AnyPage): Promise<string> {
  await beginStream(page, 'whole', GUIDE, ENDLESS)
  return textOf(await streamEnd(page, 'whole'))
}

export function abortStream(page: AnyPage, name: string): Promise<void> {
  return page.evaluate((key) => (globalThis as unknown as InPage).aborts[key]!.abort(), name)
}

export function readStream(page: AnyPage, name: string): Promise<Streamed> {
  return page.evaluate((key) => (globalThis as unknown as InPage).streamed[key]!, name)
}

/** Resolves when the body holds that text. */
export async function streamHas(page: AnyPage, name: string, text: string): Promise<void> {
  await page.waitForFunction(
    ([key, part]) => (globalThis as unknown as InPage).streamed[key]?.text.includes(part),
    [name, text] as const,
  )
}

/** The whole stream, once it has ended. */
export async function streamEnd(page: AnyPage, name: string): Promise<Streamed> {
  const ended = (key: string) => (globalThis as unknown as InPage).streamed[key]?.end !== undefined
  await page.waitForFunction(ended, name, { timeout: 120_000 })
  return readStream(page, name)
}

/** The error that a stream of messages ends with. */
export function errorOf({ text }: Streamed): { type: string; message: string } | undefined {
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  if (!last.startsWith('event: error\n')) return undefined
  return JSON.parse(last.slice(last.indexOf('data: ') + 'data: '.length)).error
}

/** The text of a whole stream of messages. Throws if it did not come to its end. */
export function textOf({ text }: Streamed): string {
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  if (!last.startsWith('event: message_stop')) throw new Error(`The stream ended with ${last}`)
  const parts = text.matchAll(/"type":"text_delta","text":("(?:[^"\\]|\\.)*")/g)
  return [...parts].map(([, part = '']) => JSON.parse(part) as string).join('')
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
