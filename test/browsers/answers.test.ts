/** Answers and streams of the three wire styles, and what becomes of the origin when they are given up. */
import { describe, expect, test } from 'vitest'
import {
  abortStream,
  beginEndless,
  ENDLESS,
  fetchIn,
  readStream,
  streamEnd,
} from '../support/requests.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import type { AnyPage } from '../support/any-page.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { checkResponseStream } from '../support/responses-grammar.ts'
import { serveIn } from '../support/site.ts'
import { webkit } from '../support/engines.ts'
import { ENGINES, GUIDE, useEngine } from './setting.ts'

const QUESTION = { role: 'user', content: 'What is inorigin?' }
const CHAT = { model: GUIDE, messages: [QUESTION], temperature: 0, max_tokens: 24 }
const RESPONSE = { model: GUIDE, input: [QUESTION], temperature: 0, max_output_tokens: 24 }

async function read(page: AnyPage, path: string, body: object): Promise<string> {
  const { status, text } = await fetchIn(page, path, body)
  expect([status, text.slice(0, 300)]).toEqual([200, expect.anything()])
  return text
}

/** Asks for a short message. Fails unless the whole of it comes. */
async function expectAnswer(page: AnyPage): Promise<void> {
  const { type, content } = JSON.parse(await read(page, '/v1/messages', { ...CHAT, max_tokens: 4 }))
  expect([type, content[0].text]).toEqual(['message', expect.stringMatching(/./)])
}

/**
 * Waits until the queue is not full. WebKit tells the service worker nothing of a request that is
 * aborted before its headers, so such answers are written to their end.
 */
async function expectRoom(page: AnyPage): Promise<void> {
  const ask = async () => (await fetchIn(page, '/v1/messages', { ...CHAT, max_tokens: 4 })).status
  await expect.poll(ask, { timeout: 60_000 }).toBe(200)
}

/** A prompt of many chunks, of which the answer to another one knows nothing. */
const LONG = 'Which of the many words of this prompt were computed before? '.repeat(80)

/** Sends a message twenty times at once, aborts each before its headers, and says how each ended. */
const abortBeforeHeaders = (page: AnyPage, body: object): Promise<string[]> =>
  page.evaluate(async (fields) => {
    const headers = { 'content-type': 'application/json' }
    const given = { method: 'POST', headers, body: JSON.stringify(fields) }
    const asked = Array.from({ length: 20 }, async () => {
      const abort = new AbortController()
      const asking = fetch('/v1/messages', { ...given, signal: abort.signal })
      setTimeout(() => abort.abort())
      return asking.then(
        () => 'headers',
        (error: Error) => error.name,
      )
    })
    return Promise.all(asked)
  }, body)

describe.each(ENGINES)('$name', (engine) => {
  const { serve } = useEngine(engine)

  test('the text is the same in each style, streamed or not', async () => {
    const page = await serve()
    const chat = JSON.parse(await read(page, '/v1/chat/completions', CHAT))
    const { content } = chat.choices[0].message
    expect(content).toMatch(/\w/)
    const message = JSON.parse(await read(page, '/v1/messages', CHAT))
    expect(message.content[0].text).toBe(content)
    const response = JSON.parse(await read(page, '/v1/responses', RESPONSE))
    expect(response.output[0].content[0].text).toBe(content)

    const stream = { stream: true }
    const chats = checkChatStream(await read(page, '/v1/chat/completions', { ...CHAT, ...stream }))
    expect(chats.content).toBe(content)
    const messages = checkMessageStream(await read(page, '/v1/messages', { ...CHAT, ...stream }))
    expect(messages.text).toBe(content)
    const responses = checkResponseStream(
      await read(page, '/v1/responses', { ...RESPONSE, ...stream }),
    )
    expect(responses.items.map(({ type }) => type)).toEqual(['message'])
    expect(responses.error).toBeNull()
  })

  test('a wrong request has its status and says what is wrong', async () => {
    const page = await serve()
    const { status, text } = await fetchIn(page, '/v1/messages', { ...CHAT, max_tokens: -1 })
    expect([status, JSON.parse(text).error.message]).toEqual([
      400,
      expect.stringContaining('max_tokens'),
    ])
  })

  test('a stream is aborted, and the next request is answered', async () => {
    const page = await serve()
    await beginEndless(page, 'stopped')
    await abortStream(page, 'stopped')
    expect(await streamEnd(page, 'stopped')).toMatchObject({ end: 'aborted' })
    await expectAnswer(page)
  })

  test('the reader of a stream is canceled, and the next request is answered', async () => {
    const page = await serve()
    await page.evaluate(
      async (body) => {
        const response = await fetch('/v1/messages', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        const reader = response.body!.getReader()
        await reader.read()
        await reader.cancel()
      },
      { ...CHAT, ...ENDLESS, max_tokens: 1000, stream: true },
    )
    await expectAnswer(page)
  })

  test('a page is reloaded in the middle of its stream, and the next request is answered', async () => {
    const page = await serve()
    await beginEndless(page, 'left')
    await page.reload()
    await serveIn(page, { device: 'wasm' })
    await expectAnswer(page)
  })

  test('twenty streams are aborted in a row, and the next request is answered', async () => {
    const page = await serve()
    for (let count = 0; count < 20; count += 1) {
      await beginEndless(page, `${count}`)
      await abortStream(page, `${count}`)
    }
    await expectAnswer(page)
  })

  test('twenty requests are aborted before their headers, and the next is answered', async () => {
    const page = await serve()
    await beginEndless(page, 'open')
    const body = { ...CHAT, messages: [{ role: 'user', content: LONG }], max_tokens: 4 }
    const names = await abortBeforeHeaders(page, { ...body, stream: true })
    expect(new Set(names)).toEqual(new Set(['AbortError']))
    expect(await readStream(page, 'open')).not.toHaveProperty('end')
    if (engine === webkit) return expectRoom(page)
    const { usage } = JSON.parse(await read(page, '/v1/messages', body))
    // Of a prompt that was computed to its end, all would be read from the cache.
    expect(usage.cache_read_input_tokens).toBeLessThan(usage.input_tokens)
  })
})
