/** Streams that are longer than browsers keep a silent service worker, and what comes after a pause. */
import type { ExpectStatic } from 'vitest'
import { checkMessageStream } from './anthropic-grammar.ts'
import type { AnyPage } from './any-page.ts'
import { checkChatStream } from './openai-grammar.ts'

/** Path of the file that a site serves slowly, so that the streams which need it wait. */
export const SLOW_FILE = '/inorigin/models/guide/onnx/model.onnx'

interface Timed {
  text: string
  milliseconds: number
}

export interface Seen {
  chat: Timed
  message: Timed
  plain: Timed
  /** A message that was asked for 35 s after the others had ended. */
  idle: Timed
}

/** Asks in each style while the model loads, and once more when the service worker was idle. */
export function watchLifetime(page: AnyPage): Promise<Seen> {
  return page.evaluate(async () => {
    const timed = async (path: string, body: object) => {
      const start = performance.now()
      const response = await fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: '@inorigin/guide',
          messages: [{ role: 'user', content: 'Hello' }],
          temperature: 0,
          max_tokens: 8,
          ...body,
        }),
      })
      return { text: await response.text(), milliseconds: performance.now() - start }
    }
    const [chat, message, plain] = await Promise.all([
      timed('/v1/chat/completions', { stream: true }),
      timed('/v1/messages', { stream: true }),
      timed('/v1/chat/completions', {}),
    ])
    // Browsers stop an idle service worker after 30 s.
    // oxlint-disable-next-line tests/no-fixed-wait -- It is what the test is about.
    await new Promise((resolve) => setTimeout(resolve, 35_000))
    return { chat, message, plain, idle: await timed('/v1/messages', {}) }
  })
}

/** Checks that what the page saw is whole, and that it took as long as the model. */
export function checkLifetime(seen: Seen, loadingMs: number, expect: ExpectStatic): void {
  for (const { milliseconds } of [seen.chat, seen.message, seen.plain]) {
    expect(milliseconds).toBeGreaterThan(loadingMs - 5_000)
  }
  const { content } = checkChatStream(seen.chat.text)
  expect(content).not.toBe('')
  expect(seen.chat.text).toContain(': ')
  expect(checkMessageStream(seen.message.text).text).toBe(content)
  expect(seen.message.text).toContain('event: ping')
  expect(JSON.parse(seen.plain.text).choices[0].message.content).toBe(content)
  expect(JSON.parse(seen.idle.text).content[0].text).toBe(content)
}
