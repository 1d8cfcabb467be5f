/** The Prompt API of the built package, answered by the embedded model. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { serve } from '../../src/index.ts'
import type * as Api from '../../src/adapters/language-model/index.ts'
import { openHub, repositoryOf } from '../support/hub.ts'
import { openSite, type Site } from '../support/site.ts'

const HTML = `<!doctype html><meta charset="utf-8"><title>Prompt API</title>
<script type="module">
  import { serve } from './inorigin/index.js'
  import * as api from './package/language-model.js'
  api.installLanguageModel({ server: () => serve(), model: '@inorigin/guide', force: true })
  Object.assign(globalThis, { api, serve })
</script>`

/** What a page finds before a click. Scripts of the test would count as one. */
const UNCLICKED = `${HTML}
<script type="module">
  const name = await LanguageModel.create().catch((error) => error.name)
  const report = [name, await LanguageModel.availability()]
  await fetch('/report', { method: 'POST', body: report.join() })
</script>`

const VISION = join(import.meta.dirname, '../models/vision')

interface InPage {
  serve: typeof serve
  api: typeof Api
  LanguageModel: Api.LanguageModelConstructor
}

let site: Site

beforeAll(async () => {
  site = await openSite({
    folders: { '/package/': 'dist' },
    pages: { '/prompt.html': HTML, '/unclicked.html': UNCLICKED },
  })
})

afterAll(() => site?.close())

/** Opens a page in a profile of its own, so that nothing is downloaded yet. */
async function openPage(): Promise<Page> {
  const page = await site.open('/prompt.html', await site.browser.newContext())
  await page.waitForFunction(() => 'api' in globalThis)
  return page
}

test('a session is created after a click, with progress, and answers in words', async () => {
  const context = await site.browser.newContext()
  await site.open('/unclicked.html', context)
  await expect.poll(() => site.reports).toEqual(['NotAllowedError,downloadable'])
  await context.close()
  const page = await openPage()
  await page.mouse.click(1, 1)
  const seen = await page.evaluate(async () => {
    const { LanguageModel } = globalThis as unknown as InPage
    const loaded: number[] = []
    const session = await LanguageModel.create({
      monitor: (monitor) =>
        monitor.addEventListener('downloadprogress', (event) =>
          loaded.push((event as ProgressEvent).loaded),
        ),
      initialPrompts: [{ role: 'user', content: 'My name is Ada.' }],
      samplingMode: 'most-predictable',
    })
    const { contextUsage, contextWindow } = session
    const measured = await session.measureContextUsage([
      { role: 'user', content: 'My name is Ada.' },
    ])
    let streamed = ''
    const parts: number[] = []
    for await (const part of session.promptStreaming('What is inorigin?')) {
      streamed += String(part)
      parts.push(String(part).length)
    }
    const clone = await session.clone()
    return {
      loaded,
      contextUsage,
      contextWindow,
      measured,
      streamed,
      parts: parts.length,
      after: session.contextUsage,
      copied: clone.contextUsage,
      answer: await clone.prompt('What is my name?'),
      continued: clone.contextUsage,
      availability: await LanguageModel.availability(),
      seeing: await LanguageModel.availability({ expectedInputs: [{ type: 'image' }] }),
    }
  })
  expect(seen.loaded[0]).toBe(0)
  expect(seen.loaded.at(-1)).toBe(1)
  expect(seen.contextWindow).toBe(2048)
  expect(seen.contextUsage).toBe(seen.measured)
  expect(seen.after).toBeGreaterThan(seen.measured)
  expect(seen.streamed).toMatch(/\w/)
  expect(seen.parts).toBeGreaterThan(1)
  expect(seen.copied).toBe(seen.after)
  expect(seen.answer).toMatch(/\w/)
  expect(seen.continued).toBeGreaterThan(seen.after)
  expect([seen.availability, seen.seeing]).toEqual(['available', 'unavailable'])
  await page.context().close()
})

test('constraints hold, with and without a prefix, and tools are executed', async () => {
  const page = await openPage()
  await page.mouse.click(1, 1)
  const seen = await page.evaluate(async () => {
    const { LanguageModel } = globalThis as unknown as InPage
    const schema = {
      type: 'object',
      properties: { rating: { type: 'integer', minimum: 0, maximum: 5 } },
      required: ['rating'],
      additionalProperties: false,
    }
    const session = await LanguageModel.create()
    const begin = (content: string) => [
      { role: 'user' as const, content: 'Rate it' },
      { role: 'assistant' as const, content, prefix: true },
    ]
    const json = await session.prompt('Rate it', { responseConstraint: schema })
    const rest = await session.prompt(begin('{ "rating" :'), { responseConstraint: schema })
    const date = await session.prompt('When?', { responseConstraint: /^\d{4}-\d\d-\d\d$/ })
    const more = await session.prompt(begin('Hello '), { responseConstraint: /^hello [a-z]{3}$/i })
    const wrong = await session
      .prompt(begin('Bye'), { responseConstraint: /^Hello/ })
      .catch((error: Error) => error.name)
    const asked: unknown[] = []
    const helper = await LanguageModel.create({
      expectedOutputs: [{ type: 'tool-call' }],
      samplingMode: 'most-predictable',
      tools: [
        {
          name: 'get_weather',
          description: 'Get the weather in a city',
          inputSchema: {
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
          },
          execute: async (input: object) => {
            asked.push(input)
            return JSON.stringify({ degrees: 12 })
          },
        },
      ],
    })
    const weather = await helper.prompt('What is the weather in Oslo?')
    return { json, rest, date, more, wrong, asked, weather }
  })
  expect(JSON.parse(String(seen.json))).toEqual({ rating: expect.any(Number) })
  expect(JSON.parse(`{ "rating" :${String(seen.rest)}`)).toEqual({ rating: expect.any(Number) })
  expect(seen.date).toMatch(/^\d{4}-\d\d-\d\d$/)
  expect(seen.more).toMatch(/^[a-z]{3}$/i)
  expect(seen.wrong).toBe('NotSupportedError')
  expect(seen.asked).toContainEqual({ city: expect.any(String) })
  expect(seen.weather).toMatch(/\w/)
  await page.context().close()
})

test(
  'the window overflows by exchanges, and a prompt that cannot fit is refused',
  { tags: ['slow'] },
  async () => {
    const page = await openPage()
    await page.mouse.click(1, 1)
    const seen = await page.evaluate(async () => {
      const { LanguageModel } = globalThis as unknown as InPage
      const session = await LanguageModel.create()
      const overflow = new Promise((resolve) => {
        session.addEventListener('contextoverflow', ({ type }) => resolve(type), { once: true })
      })
      const word = 'tokens and words '
      const measure = (times: number) => session.measureContextUsage(word.repeat(times))
      const [few, many] = [await measure(20), await measure(40)]
      await session.append(word.repeat(20))
      // It fits by itself, but not beside the first message.
      const times = 20 + Math.floor(((session.contextWindow - few - 10) * 20) / (many - few))
      await session.append(word.repeat(times))
      const kept = session.contextUsage
      const error = (await session
        .prompt(word.repeat(times * 8))
        .catch((thrown: unknown) => thrown)) as DOMException & { quota: number; requested: number }
      const { name, quota, requested } = error
      const measured = await session.measureContextUsage(word.repeat(times * 8))
      return { type: await overflow, kept, name, quota, requested, measured }
    })
    expect(seen.type).toBe('contextoverflow')
    expect(seen.kept).toBeLessThanOrEqual(2048)
    expect(seen.name).toBe('QuotaExceededError')
    expect(seen.quota).toBe(2048)
    expect(seen.requested).toBe(seen.measured)
    await page.context().close()
  },
)

test(
  'images of a canvas and of bytes are seen by a model that sees',
  { tags: ['slow'] },
  async () => {
    const hub = await openHub({ 'me/vision': repositoryOf(VISION, 'c'.repeat(40)) })
    onTestFinished(() => hub.close())
    const page = await openPage()
    await page.mouse.click(1, 1)
    const bytes = readFileSync(join(VISION, 'other.png')).toString('base64')
    const seen = await page.evaluate(
      async ({ host, base64 }) => {
        const { serve, api } = globalThis as unknown as InPage
        const capabilities = { imageInput: true }
        const entry = { tag: '@me/vision', huggingface: 'me/vision', host, capabilities }
        const server = await serve({ device: 'wasm', catalog: { version: 1, entries: [entry] } })
        const Seeing = api.defineLanguageModel({ server, model: '@me/vision' })
        const expectedInputs = [{ type: 'image' as const }]
        const session = await Seeing.create({ expectedInputs })
        const canvas = document.createElement('canvas')
        canvas.getContext('2d')?.fillRect(0, 0, 9, 9)
        const ask = (value: ImageBitmapSource | BufferSource) => [
          {
            role: 'user' as const,
            content: [
              { type: 'text' as const, value: 'the' },
              { type: 'image' as const, value },
            ],
          },
        ]
        const nameOf = (work: Promise<unknown>) => work.catch((error: Error) => error.name)
        const file = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))
        return {
          text: await session.measureContextUsage('the'),
          canvas: await session.measureContextUsage(ask(canvas)),
          answer: await session.prompt(ask(file), { responseConstraint: /^[a-z]{3}$/ }),
          wrong: await nameOf(session.prompt(ask(new Uint8Array(9)))),
          unexpected: await nameOf((await Seeing.create()).prompt(ask(canvas))),
        }
      },
      { host: hub.url, base64: bytes },
    )
    expect(seen.canvas).toBeGreaterThan(seen.text)
    expect(seen.answer).toMatch(/^[a-z]{3}$/)
    expect(seen).toMatchObject({
      wrong: 'EncodingError',
      unexpected: 'NotSupportedError',
    })
    await page.context().close()
  },
)
