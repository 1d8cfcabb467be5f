/** Loads that any tab pauses or cancels, whoever started them, and what the trace says of them. */
import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Server, TraceEvent } from '../../src/index.ts'
import { fileOn, type ServedFile } from '../support/content.ts'
import { openFaults, type FaultServer } from '../support/faults.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { CHUNK, entryOf, load, MIB, storage } from '../support/stored.ts'

interface InPage {
  server: Server
  events: TraceEvent[]
  answer: Promise<Answer>
}

interface Answer {
  status: number
  retry: string | null
  error: { code?: string } | string | undefined
}

const TAG = '@me/one'
const SECRET = 4711.25

let faults: FaultServer
let site: Site

beforeAll(async () => {
  faults = await openFaults()
})

afterEach(() => site?.close())

afterAll(() => faults?.close())

/** Opens two tabs, of which the first hosts. The first download stalls in its second chunk. */
async function openTabs(): Promise<{ host: Page; other: Page; weights: ServedFile }> {
  site = await openSite()
  const options = { bytes: 40 * MIB, piece: 256 * 1024, faults: [{ stall: 24 * MIB }] }
  const weights = await fileOn(faults.url, options)
  const [host, other] = [await site.open(), await site.open()]
  for (const page of [host, other]) {
    await serveIn(page, {
      device: 'wasm',
      catalog: { version: 1, entries: [entryOf(TAG, weights)] },
    })
  }
  await follow(other)
  return { host, other, weights }
}

/** Collects the trace of the host in that page, from its first event on. */
async function follow(page: Page): Promise<void> {
  await page.evaluate(() => {
    const shared = globalThis as unknown as InPage
    shared.events = []
    void (async () => {
      for await (const event of shared.server.trace()) shared.events.push(event)
    })()
  })
  // The host reports itself to whoever begins to follow. What came before is in no trace.
  await traced(page, 'host')
}

/** Starts a prediction over HTTP, which loads the predictor. Its input is a secret. */
const request = (page: Page) =>
  page.evaluate(
    ([tag, x]) => {
      const shared = globalThis as unknown as InPage
      const ask = async () => {
        const response = await fetch('/v1/predictions/remote', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ tag, inputs: { x } }),
        })
        const { error } = (await response.json()) as Pick<Answer, 'error'>
        return { status: response.status, retry: response.headers.get('x-should-retry'), error }
      }
      shared.answer = ask()
    },
    [TAG, SECRET] as const,
  )

/** Expects that the request failed because its load was paused. */
async function expectPaused(page: Page): Promise<void> {
  const { status, retry, error } = await page.evaluate(
    () => (globalThis as unknown as InPage).answer,
  )
  // A machine that needs 5 s for the first chunk has sent the status by then.
  if (status === 200) expect(error).toMatch(/paused/)
  else
    expect({ status, retry, error }).toMatchObject({
      status: 503,
      retry: 'false',
      error: { code: 'load_paused' },
    })
}

/** Waits until more than the first chunk arrived. The bytes of the second are not stored yet. */
const untilStalled = (page: Page) =>
  page.evaluate(
    async ([tag, least]) => {
      const { server } = globalThis as unknown as InPage
      for await (const step of server.models.progress()) {
        if (step.tag === tag && step.loadedBytes > least) return
      }
    },
    [TAG, 20 * MIB] as const,
  )

const call = (page: Page, method: 'pause' | 'cancel') =>
  page.evaluate(([name, tag]) => (globalThis as unknown as InPage).server.models[name](tag), [
    method,
    TAG,
  ] as const)

/** Waits until the trace has an event of that type, and returns all events. */
async function traced(page: Page, type: TraceEvent['type']): Promise<TraceEvent[]> {
  await page.waitForFunction(
    (wanted) => (globalThis as unknown as InPage).events.some((event) => event.type === wanted),
    type,
  )
  return page.evaluate(() => (globalThis as unknown as InPage).events)
}

test('another tab pauses the load of a request, and a later load resumes it', async () => {
  const { host, other, weights } = await openTabs()
  await request(host)
  await untilStalled(other)
  await call(other, 'pause')
  await expectPaused(host)
  const partial = { tag: TAG, status: 'partial', bytes: CHUNK, inUse: false }
  expect(await storage(other, 'list')).toMatchObject([partial])

  const events = await traced(other, 'failure')
  const failure = { kind: 'unavailable', code: 'load_paused' }
  const chosen = { tag: TAG, implementation: 'wasm', device: 'wasm' }
  const asked = { tag: TAG, operation: 'createRemotePrediction' }
  expect(events.filter(({ type }) => type !== 'host')).toMatchObject([
    { type: 'request', ...asked },
    { type: 'choice', ...chosen },
    { type: 'load', status: 'started', ...chosen },
    { type: 'load', status: 'ended', error: failure, ...chosen },
    { type: 'failure', error: failure, milliseconds: expect.any(Number), ...asked },
  ])
  expect(JSON.stringify(events)).not.toContain(String(SECRET))

  // The file is no model, so the load fails after the rest has arrived.
  expect(await load(other, TAG)).toBe('model_unusable')
  expect((await weights.seen())[1]).toMatchObject({ range: `bytes=${CHUNK}-`, sent: 24 * MIB })
})

test('another tab cancels the load of a request, and its bytes are deleted', async () => {
  const { host, other } = await openTabs()
  await request(host)
  await untilStalled(other)
  await call(other, 'cancel')
  await expectPaused(host)
  expect(await storage(other, 'list')).toEqual([])
  expect(await storage(other, 'usage')).toMatchObject({ bytes: 0 })
})

test('the trace of a chat has its load and its time, and no prompt', async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  await follow(page)
  const text = await page.evaluate(async () => {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: '@inorigin/guide',
        messages: [{ role: 'user', content: 'What is inorigin?' }],
        max_tokens: 8,
      }),
    })
    const body = (await response.json()) as { choices: [{ message: { content: string } }] }
    return body.choices[0].message.content
  })
  const events = await traced(page, 'response')
  const names = events.map((event) =>
    event.type === 'load' ? `${event.type} ${event.status}` : event.type,
  )
  const expected = ['request', 'choice', 'load started', 'load ready', 'response']
  expect(names.filter((name) => name !== 'host')).toEqual(expected)
  expect(events.at(-1)).toMatchObject({ operation: 'generate', tag: '@inorigin/guide' })
  expect(JSON.stringify(events)).not.toContain('What is')
  expect(JSON.stringify(events)).not.toContain(text)
})
