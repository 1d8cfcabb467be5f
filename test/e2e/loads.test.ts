/** Loads of models: requests that wait for them, their progress, and what ends them. */
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { LoadProgress, Server } from '../../src/index.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { workersOf } from '../support/dying.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import {
  askBriefly,
  askGuide,
  beginStream,
  CHAT,
  fetchIn,
  GUIDE,
  MESSAGES,
  readStream,
  streamEnd,
} from '../support/requests.ts'
import { bundleSdks } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const FOLDER = '/inorigin/models/guide'
const WEIGHTS = `${FOLDER}/onnx/model.onnx`
const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
  sdks: typeof import('../support/sdks-entry.ts')
  /** Number of responses whose status has come. */
  heads: number
  results: Promise<object>[]
  steps: LoadProgress[]
}

/** Opens a site on which a file arrives as a whole when the test calls the returned function. */
async function openLate(path: string): Promise<() => void> {
  let isReleased = false
  site = await openSite({ slow: { [path]: () => isReleased } })
  return () => (isReleased = true)
}

async function openTab(): Promise<Page> {
  const page = await site.open()
  await serveIn(page)
  return page
}

const statusOf = (page: Page, tag = GUIDE) =>
  page.evaluate(async (name) => {
    const states = await (globalThis as unknown as InPage).server.models.list()
    return states.find((state) => state.tag === name)?.status
  }, tag)

const call = (page: Page, method: 'unload' | 'remove') =>
  page.evaluate(([name, tag]) => (globalThis as unknown as InPage).server.models[name](tag), [
    method,
    GUIDE,
  ] as const)

const tooLong = { messages: [{ role: 'user', content: 'word '.repeat(3000) }] }
const few = { max_tokens: 6 }

/** Begins requests by name, and resolves when all of them have their headers. */
async function beginAll(page: Page, requests: Record<string, readonly [string, object]>) {
  const names = Object.keys(requests)
  for (const [name, [path, fields]] of Object.entries(requests)) {
    await beginStream(page, name, GUIDE, { ...few, ...fields }, path)
  }
  const statuses = () =>
    Promise.all(names.map(async (name) => (await readStream(page, name)).status))
  await expect.poll(statuses).not.toContain(0)
}

test('while weights load, headers come at once and the body waits with comments and pings', async () => {
  const release = await openLate(WEIGHTS)
  const page = await openTab()
  await beginAll(page, {
    chat: [CHAT, {}],
    message: [MESSAGES, {}],
    plain: [MESSAGES, { stream: false }],
    // The tokenizer is there, so this one need not wait for the weights to be a real 400.
    refused: [MESSAGES, tooLong],
  })
  release()
  const chat = await streamEnd(page, 'chat')
  expect([chat.status, checkChatStream(chat.text).content]).toEqual([
    200,
    expect.stringMatching(/./),
  ])
  expect(chat.text).toMatch(/^: .*guide.*\d/m)
  const message = await streamEnd(page, 'message')
  expect(checkMessageStream(message.text).text).toBe(checkChatStream(chat.text).content)
  const plain = await streamEnd(page, 'plain')
  expect([plain.status, JSON.parse(plain.text).type]).toEqual([200, 'message'])
  expect((await streamEnd(page, 'refused')).status).toBe(400)
})

test(
  'without a tokenizer, 200 goes out after 5 s and a late refusal is in-band',
  SLOW,
  async () => {
    const release = await openLate(`${FOLDER}/tokenizer.json`)
    const page = await openTab()
    await beginAll(page, {
      good: [CHAT, {}],
      chat: [CHAT, tooLong],
      message: [MESSAGES, tooLong],
      plain: [MESSAGES, { ...tooLong, stream: false }],
    })
    release()
    const [good, chat, message, plain] = await Promise.all(
      ['good', 'chat', 'message', 'plain'].map((name) => streamEnd(page, name)),
    )
    for (const answer of [good, chat, message, plain]) expect(answer?.status).toBe(200)
    expect(checkChatStream(good!.text).content).not.toBe('')
    expect(checkChatStream(chat!.text).error?.['message']).toMatch(/prompt is too long/)
    expect(checkMessageStream(message!.text).error?.['message']).toMatch(/prompt is too long/)
    // The body has spaces and then the error.
    expect(plain!.end).toBe('done')
    expect(JSON.parse(plain!.text)).toMatchObject({
      type: 'error',
      error: { message: expect.stringMatching(/prompt is too long/) },
    })
  },
)

test(
  'a load that fails after 5 s has its error in every body that is not a stream',
  SLOW,
  async () => {
    let isReleased = false
    site = await openSite({
      slow: { [`${FOLDER}/tokenizer.json`]: () => isReleased },
      pages: { [WEIGHTS]: 'not a model at all', '/sdks.js': await bundleSdks() },
    })
    const page = await openTab()
    await page.addScriptTag({ url: '/sdks.js' })
    await page.evaluate(
      ([model, paths]) => {
        const shared = globalThis as unknown as InPage
        const { server, sdks } = shared
        const messages = [{ role: 'user' as const, content: 'Hi' }]
        const body = { model, messages, input: 'Hi', max_tokens: 6 }
        shared.heads = 0
        shared.results = []
        for (const send of [fetch, server.fetch]) {
          // Counts the responses whose status has come.
          const counted: typeof fetch = async (...request) => {
            const response = await send.apply(globalThis, request)
            shared.heads += 1
            return response
          }
          const options = { apiKey: 'k', dangerouslyAllowBrowser: true, fetch: counted }
          const openai = new sdks.OpenAI({ ...options, baseURL: server.baseURL })
          const anthropic = new sdks.Anthropic({ ...options, baseURL: location.origin })
          const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
          const raw = paths.map(async (path) => {
            const response = await counted(path, { ...init, body: JSON.stringify(body) })
            return JSON.parse(await response.text()) as object
          })
          shared.results.push(
            ...raw,
            openai.chat.completions.create({ model, messages }),
            openai.responses.create({ model, input: 'Hi' }),
            anthropic.messages.create({ model, messages, max_tokens: 6 }),
          )
        }
      },
      [GUIDE, [CHAT, MESSAGES]] as const,
    )
    const COUNT = 10
    // Each has status 200, 5 s after it was sent.
    await page.waitForFunction((count) => (globalThis as unknown as InPage).heads === count, COUNT)
    isReleased = true
    const results = await page.evaluate(() =>
      Promise.all((globalThis as unknown as InPage).results),
    )
    expect(results).toHaveLength(COUNT)
    for (const result of results)
      expect(result).toMatchObject({
        error: { message: expect.stringMatching(/@inorigin\/guide.*onnx\/model\.onnx/s) },
      })
  },
)

test('weights that are not those of the catalog are a clear error, once', SLOW, async () => {
  site = await openSite({ pages: { [WEIGHTS]: 'not a model at all' } })
  const page = await openTab()
  const stream = () =>
    fetchIn(page, CHAT, { model: GUIDE, messages: [{ role: 'user', content: 'Hi' }], stream: true })
  const broken = await stream()
  expect(
    broken.status === 200 ? checkChatStream(broken.text).error : JSON.parse(broken.text).error,
  ).toMatchObject({ message: expect.stringContaining('onnx/model.onnx') })
  // A plain answer has no frames to say it in: what fails at once is a status.
  expect(await askGuide(page)).toMatch(/^503 .*onnx\/model\.onnx/)
  delete site.pages[WEIGHTS]
  expect(checkChatStream((await stream()).text).content).not.toBe('')
})

/** Collects the progress of loads in that tab. */
const follow = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const shared = globalThis as unknown as InPage
    shared.steps = []
    void (async () => {
      for await (const step of shared.server.models.progress()) shared.steps.push(step)
    })()
  })

const stepsOf = (page: Page): Promise<LoadProgress[]> =>
  page.evaluate(() => (globalThis as unknown as InPage).steps)

const untilReached = (page: Page, phase: LoadProgress['phase']) =>
  page.waitForFunction(
    (wanted) => (globalThis as unknown as InPage).steps.some((step) => step.phase === wanted),
    phase,
  )

test(
  'every tab is told bytes and phases; unload and remove give back memory and disk',
  SLOW,
  async () => {
    const release = await openLate(WEIGHTS)
    const [one, two] = [await openTab(), await openTab()]
    await follow(two)
    const asked = askBriefly(one)
    await untilReached(two, 'download')
    release()
    await untilReached(two, 'ready')
    expect((await asked).status).toBe(200)
    const steps = await stepsOf(two)
    const bytes = steps.map(({ loadedBytes }) => loadedBytes)
    expect(bytes).toEqual(bytes.toSorted((first, second) => first - second))
    expect(new Set(bytes).size).toBeGreaterThan(3)
    expect(Math.max(...steps.map(({ bytesPerSecond }) => bytesPerSecond))).toBeGreaterThan(100_000)
    const phases = ['download', 'compile', 'warm', 'ready']
    expect([...new Set(steps.map(({ phase }) => phase))]).toEqual(phases)
    expect(steps.at(-1)).toMatchObject({ tag: GUIDE, loadedBytes: steps.at(-1)?.totalBytes })

    const workers = () => workersOf(one, 'model-worker.js').length
    expect([await statusOf(two), workers()]).toEqual(['loaded', 1])
    await call(two, 'unload')
    expect(await statusOf(two)).toBe('stored')
    await expect.poll(workers).toBe(0)
    expect(await askGuide(two)).not.toMatch(/^\d{3} /)
    await call(two, 'remove')
    expect(await statusOf(two)).toBe('remote')
  },
)

test('a load that is aborted stops its download, and a later one continues', SLOW, async () => {
  const release = await openLate(WEIGHTS)
  const page = await openTab()
  const kind = await page.evaluate(async (tag) => {
    const { server } = globalThis as unknown as InPage
    const giveUp = new AbortController()
    const onProgress = ({ loadedBytes }: LoadProgress) => {
      if (loadedBytes >= 500_000) giveUp.abort()
    }
    return server.models.load(tag, { signal: giveUp.signal, onProgress }).then(
      () => 'loaded',
      (thrown: { kind: string }) => thrown.kind,
    )
  }, GUIDE)
  expect(kind).toBe('aborted')
  await expect.poll(() => statusOf(page)).toBe('remote')
  release()
  expect(await askGuide(page)).not.toMatch(/^\d{3} /)
})

test('unloading what is still on its way is not called a cancellation', async () => {
  await openLate(`${FOLDER}/tokenizer.json`)
  const page = await openTab()
  // The host is ready, so that the refusal comes within the 5 s in which it can be a status.
  expect((await fetchIn(page, '/v1/models')).status).toBe(200)
  const asking = askBriefly(page)
  await expect.poll(() => site.requests).toContain(`GET ${FOLDER}/tokenizer.json`)
  await call(page, 'unload')
  const { status, text, headers } = await asking
  const { code } = JSON.parse(text).error
  expect([status, code, headers['retry-after']]).toEqual([503, 'unloaded', '1'])
})

test('progress goes on with the next host, and can be left while it waits', SLOW, async () => {
  site = await openSite()
  const [one, two] = [await openTab(), await openTab()]
  await follow(two)
  await one.close()
  // It takes a moment to find the next host; a load after that must be seen.
  const seen = () =>
    two.evaluate(async () => {
      const { server, steps } = globalThis as unknown as InPage
      await server.models.load('@inorigin/digits')
      await server.models.unload('@inorigin/digits')
      return steps.at(-1)?.phase
    })
  await expect.poll(seen).toBe('ready')
  const left = await two.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const iterator = server.models.progress()[Symbol.asyncIterator]()
    const next = iterator.next()
    // By the time the host has answered this, both wait for a step.
    await server.models.list()
    await iterator.return?.()
    const giveUp = new AbortController()
    void server.models.list().then(() => giveUp.abort())
    for await (const _step of server.models.progress({ signal: giveUp.signal }));
    return (await next).done
  })
  expect(left).toBe(true)
})

test('a queue that is full answers 429 with retry-after, and the others', SLOW, async () => {
  site = await openSite()
  const page = await openTab()
  await askBriefly(page)
  const body = {
    model: GUIDE,
    // Each answer is as long as it may be, so that all requests have arrived before one of them ends.
    max_tokens: 100,
    logit_bias: { 2034: -100 },
    messages: [{ role: 'user', content: 'Tell me about it' }],
  }
  const answers = await Promise.all(Array.from({ length: 24 }, () => fetchIn(page, MESSAGES, body)))
  const full = answers.filter(({ status }) => status === 429)
  expect(full.length).toBeGreaterThan(0)
  const whole = answers.filter(
    ({ status, text }) => status === 200 && JSON.parse(text).type === 'message',
  )
  expect(whole).toHaveLength(24 - full.length)
  expect(new Set(full.map(({ headers }) => headers['retry-after']))).toEqual(new Set(['2']))
})
