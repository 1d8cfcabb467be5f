/** Requests that arrive before their model does: status first, then patience, then in-band. */
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const GUIDE = '/inorigin/models/guide'
let site: Site

afterEach(() => site?.close())

interface Answer {
  status: number
  /** The body, or the name of what reading it threw. */
  text: string
}

function ask(page: Page, path: string, extra: object): Promise<Answer> {
  return page.evaluate(
    async ([url, fields]) => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: '@inorigin/guide',
          max_tokens: 6,
          messages: [{ role: 'user', content: 'Hello' }],
          ...fields,
        }),
      })
      void fetch('/report', { method: 'POST', body: url })
      const text = await response.text().catch((error: Error) => `threw ${error.name}`)
      return { status: response.status, text }
    },
    [path, extra] as const,
  )
}

/** A file that comes when so many requests have their headers. */
const untilHeaders = (count: number) => () => site.reports.length >= count

const tooLong = { messages: [{ role: 'user', content: 'word '.repeat(3000) }] }

test('while weights load, headers come at once and the body waits with comments and pings', async () => {
  site = await openSite({ slow: { [`${GUIDE}/onnx/model.onnx`]: untilHeaders(4) } })
  const page = await site.open()
  await serveIn(page)
  const [chat, message, plain, refused] = await Promise.all([
    ask(page, '/v1/chat/completions', { stream: true }),
    ask(page, '/v1/messages', { stream: true }),
    ask(page, '/v1/messages', {}),
    // The tokenizer is there, so this one need not wait for the weights to be a real 400.
    ask(page, '/v1/messages', { ...tooLong, stream: true }),
  ])
  // The weights come only after all four have their headers.
  for (const { status } of [chat, message, plain]) expect(status).toBe(200)
  expect(checkChatStream(chat.text).content).not.toBe('')
  expect(chat.text).toMatch(/^: .*guide.*\d/m)
  expect(checkMessageStream(message.text).text).toBe(checkChatStream(chat.text).content)
  expect(JSON.parse(plain.text).type).toBe('message')
  expect(refused.status).toBe(400)
})

test(
  'when even the tokenizer is slow, 200 goes out after 5 s and a late refusal is in-band',
  { tags: ['slow'] },
  async () => {
    site = await openSite({ slow: { [`${GUIDE}/tokenizer.json`]: untilHeaders(4) } })
    const page = await site.open()
    await serveIn(page)
    const [good, chat, message, plain] = await Promise.all([
      ask(page, '/v1/chat/completions', { stream: true }),
      ask(page, '/v1/chat/completions', { ...tooLong, stream: true }),
      ask(page, '/v1/messages', { ...tooLong, stream: true }),
      ask(page, '/v1/messages', tooLong),
    ])
    // The tokenizer comes only after all four have their headers.
    for (const { status } of [good, chat, message, plain]) expect(status).toBe(200)
    expect(checkChatStream(good.text).content).not.toBe('')
    expect(checkChatStream(chat.text).error?.['message']).toMatch(/prompt is too long/)
    expect(checkMessageStream(message.text).error?.['message']).toMatch(/prompt is too long/)
    // Never an error object under 200: the body breaks off instead.
    expect(plain.text).toMatch(/^threw /)
  },
)

test(
  'weights that are not what the catalog says are a clear error, and the next try starts anew',
  { tags: ['slow'] },
  async () => {
    site = await openSite({ pages: { [`${GUIDE}/onnx/model.onnx`]: 'not a model at all' } })
    const page = await site.open()
    await serveIn(page)
    const broken = await ask(page, '/v1/chat/completions', { stream: true })
    expect(
      broken.status === 200 ? checkChatStream(broken.text).error : JSON.parse(broken.text).error,
    ).toMatchObject({ message: expect.stringContaining('onnx/model.onnx') })
    // A plain answer has no frames to say it in: what fails at once is a status.
    const plain = await ask(page, '/v1/chat/completions', {})
    expect(plain.status).toBe(503)
    expect(JSON.parse(plain.text).error.message).toContain('onnx/model.onnx')
    delete site.pages[`${GUIDE}/onnx/model.onnx`]
    expect(
      checkChatStream((await ask(page, '/v1/chat/completions', { stream: true })).text).content,
    ).not.toBe('')
  },
)

test(
  'progress of a load is told to every tab, whoever asked for it',
  { tags: ['slow'] },
  async () => {
    // The model comes when the other tab has seen its download.
    const isSeen = () => site.reports.includes('download')
    site = await openSite({ slow: { [`${GUIDE}/onnx/model.onnx`]: isSeen } })
    const [one, two] = [await site.open(), await site.open()]
    await serveIn(one)
    await serveIn(two)
    const watching = two.evaluate(async () => {
      const { server } = globalThis as unknown as { server: Server }
      const phases = new Set<string>()
      for await (const { tag, phase, loadedBytes, totalBytes } of server.models.progress()) {
        if (!phases.has(phase)) void fetch('/report', { method: 'POST', body: phase })
        phases.add(phase)
        if (phase === 'ready')
          return { tag, phases: [...phases], whole: loadedBytes === totalBytes }
      }
      return undefined
    })
    await ask(one, '/v1/messages', {})
    expect(await watching).toEqual({
      tag: '@inorigin/guide',
      phases: ['download', 'compile', 'warm', 'ready'],
      whole: true,
    })
  },
)

test(
  'a queue that is full answers 429 with retry-after, and the others are answered',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page)
    await ask(page, '/v1/messages', {})
    const seen = await page.evaluate(async () => {
      const body = JSON.stringify({
        model: '@inorigin/guide',
        // Each answer is as long as it may be, so that all requests have arrived before one of them ends.
        max_tokens: 100,
        logit_bias: { 2034: -100 },
        messages: [{ role: 'user', content: 'Tell me about it' }],
      })
      const headers = { 'content-type': 'application/json' }
      const answers = Array.from({ length: 24 }, async () => {
        const response = await fetch('/v1/messages', { method: 'POST', headers, body })
        const { type } = await response.json()
        return [response.status, type, response.headers.get('retry-after')] as const
      })
      return Promise.all(answers)
    })
    const full = seen.filter(([status]) => status === 429)
    expect(full.length).toBeGreaterThan(0)
    expect(seen.filter(([status, type]) => status === 200 && type === 'message')).toHaveLength(
      24 - full.length,
    )
    expect(new Set(full.map(([, , after]) => after))).toEqual(new Set(['2']))
  },
)
