/** The Prompt API of the built package, answered by the embedded model. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { serve } from '../../src/index.ts'
import type * as Api from '../../src/extras/language-model/index.ts'
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

const IMAGE = join(import.meta.dirname, '../models/vision/other.png')

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

test('creates a session after a click, with progress, and answers', async () => {
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

test('keeps to constraints, with and without a prefix, and executes tools', async () => {
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
    const unsupported = await session
      .prompt('Twice', { responseConstraint: /^([a-z]+)\1$/ })
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
    return { json, rest, date, more, wrong, unsupported, asked, weather }
  })
  expect(JSON.parse(String(seen.json))).toEqual({ rating: expect.any(Number) })
  expect(JSON.parse(`{ "rating" :${String(seen.rest)}`)).toEqual({ rating: expect.any(Number) })
  expect(seen.date).toMatch(/^\d{4}-\d\d-\d\d$/)
  expect(seen.more).toMatch(/^[a-z]{3}$/i)
  expect([seen.wrong, seen.unsupported]).toEqual(['NotSupportedError', 'NotSupportedError'])
  expect(seen.asked).toContainEqual({ city: expect.any(String) })
  expect(seen.weather).toMatch(/\w/)
  await page.context().close()
})

test('sees images of a canvas and of bytes', { tags: ['slow'] }, async () => {
  const page = await openPage()
  await page.mouse.click(1, 1)
  const seen = await page.evaluate(
    async (base64) => {
      const { serve, api } = globalThis as unknown as InPage
      const server = await serve()
      const Seeing = api.defineLanguageModel({ server, model: '@inorigin/glance' })
      const session = await Seeing.create({ expectedInputs: [{ type: 'image' as const }] })
      const canvas = document.createElement('canvas')
      canvas.getContext('2d')?.fillRect(0, 0, 9, 9)
      const ask = (value: ImageBitmapSource | BufferSource) => {
        const text = { type: 'text' as const, value: 'the' }
        return [{ role: 'user' as const, content: [text, { type: 'image' as const, value }] }]
      }
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
    readFileSync(IMAGE, 'base64'),
  )
  expect(seen.canvas).toBeGreaterThan(seen.text)
  expect(seen.answer).toMatch(/^[a-z]{3}$/)
  expect(seen).toMatchObject({ wrong: 'EncodingError', unexpected: 'NotSupportedError' })
  await page.context().close()
})
