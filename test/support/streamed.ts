/** A streamed answer that a page reads while the test does something else. */
import type { AnyPage } from './any-page.ts'

export interface Streamed {
  status: number
  /** The body so far. */
  text: string
  /** End of the reading: `done`, or the name of its error. Absent while the page reads. */
  end?: string
}

interface InPage {
  streamed: Record<string, Streamed>
  aborts: Record<string, AbortController>
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

/** Begins a streamed answer of the model `tag`; `name` is what the test calls it. Default: a message. */
export async function beginStream(
  page: AnyPage,
  name: string,
  tag: string,
  fields: object = {},
  path = '/v1/messages',
): Promise<void> {
  await page.evaluate(
    ([key, model, more, url]) => {
      const kept = globalThis as unknown as InPage
      const state: Streamed = { status: 0, text: '' }
      const abort = new AbortController()
      kept.streamed = { ...kept.streamed, [key]: state }
      kept.aborts = { ...kept.aborts, [key]: abort }
      const read = async () => {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            model,
            max_tokens: 1000,
            stream: true,
            messages: [{ role: 'user', content: 'Tell me all about it' }],
            ...more,
          }),
          signal: abort.signal,
        })
        state.status = response.status
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return
          state.text += value
        }
      }
      read().then(
        () => (state.end = 'done'),
        (error: Error) => (state.end = error.name),
      )
    },
    [name, tag, fields, path] as const,
  )
}

/** Begins an endless message of the guide, and resolves when the first of its text has come. */
export async function beginEndless(page: AnyPage, name: string): Promise<void> {
  await beginStream(page, name, '@inorigin/guide', ENDLESS)
  await streamHas(page, name, 'content_block_delta')
}

/** The whole text of that message. */
export async function readEndless(page: AnyPage): Promise<string> {
  await beginStream(page, 'whole', '@inorigin/guide', ENDLESS)
  return textOf(await streamEnd(page, 'whole'))
}

/** Sends as many messages at once, aborts each before its headers, and says how each ended. */
export function abortBeforeHeaders(page: AnyPage, body: object, count: number): Promise<string[]> {
  return page.evaluate(
    async ([fields, times]) => {
      const given = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(fields),
      }
      const asked = Array.from({ length: times }, async () => {
        const abort = new AbortController()
        const asking = fetch('/v1/messages', { ...given, signal: abort.signal })
        setTimeout(() => abort.abort())
        return asking.then(
          () => 'headers',
          (error: Error) => error.name,
        )
      })
      return Promise.all(asked)
    },
    [body, count] as const,
  )
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
