/** Answers and streams of the three wire styles, and what becomes of the origin when they are given up. */
import { describe, expect, test } from 'vitest'
import { fetchIn } from '../support/answers.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import type { AnyPage } from '../support/any-page.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { checkResponseStream } from '../support/responses-grammar.ts'
import { serveIn } from '../support/site.ts'
import {
  abortBeforeHeaders,
  abortStream,
  beginEndless,
  ENDLESS,
  readStream,
  streamEnd,
} from '../support/streamed.ts'
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
    expect(await streamEnd(page, 'stopped')).toMatchObject({ end: 'AbortError' })
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
    const names = await abortBeforeHeaders(page, { ...CHAT, stream: true }, 20)
    expect(new Set(names)).toEqual(new Set(['AbortError']))
    expect(await readStream(page, 'open')).not.toHaveProperty('end')
    if (engine === webkit) await expectRoom(page)
    await expectAnswer(page)
  })
})
