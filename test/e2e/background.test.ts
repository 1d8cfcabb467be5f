/** Background responses through the official client: readers, hosts and browsers come and go. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright'
import { afterEach, beforeAll, expect, test } from 'vitest'
import type { ServeOptions } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { threadsOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { bundleSdks } from '../support/sdks.ts'

let script = ''
let site: Site
let profile: string | undefined

beforeAll(async () => {
  script = await bundleSdks()
})

afterEach(async () => {
  await site?.close()
  if (profile) await rm(profile, { recursive: true })
  profile = undefined
})

/**
 * Forbids the guide's end token, so that an answer is as long as its limit. It is long, because tabs
 * are closed while it is written.
 */
const LONG = {
  model: '@inorigin/guide',
  input: 'Tell me all about inorigin.',
  seed: 7,
  temperature: 1,
  max_output_tokens: 1000,
  logit_bias: { 2034: -100 },
}

interface ResponseEvent {
  type: string
  sequence_number: number
  delta?: string
  response?: ResponseBody
}

interface ResponseBody {
  id: string
  status: string
  background: boolean
  output_text?: string
  output: { id: string; content: { text: string }[] }[]
  usage: { output_tokens: number } | null
}

/** Opens a tab with the client. `serve` options make it a candidate for hosting. */
async function openTab(
  options: ServeOptions | null = { device: 'wasm' },
  key = 'k',
  context?: BrowserContext,
): Promise<Page> {
  const page = await site.open(undefined, context)
  if (options) await serveIn(page, options)
  await page.addScriptTag({ content: script })
  await page.evaluate((apiKey) => {
    const { sdks } = globalThis as unknown as { sdks: { OpenAI: new (o: object) => object } }
    const baseURL = `${location.origin}/v1`
    const settings = { apiKey, baseURL, dangerouslyAllowBrowser: true, maxRetries: 0 }
    Object.assign(globalThis, { openai: new sdks.OpenAI(settings) })
  }, key)
  return page
}

/** Calls a method of `openai.responses`. A refusal becomes its status and code. */
function call(page: Page, method: string, ...args: unknown[]): Promise<unknown> {
  return page.evaluate(
    async ([name, given]) => {
      const { openai } = globalThis as unknown as {
        openai: { responses: Record<string, (...all: unknown[]) => Promise<unknown>> }
      }
      try {
        return await openai.responses[name]!(...given)
      } catch (error) {
        const { status, code } = error as { status?: number; code?: string }
        if (status === undefined) throw error
        return { status, code }
      }
    },
    [method, args] as const,
  )
}

const create = (page: Page, fields: object = {}) =>
  call(page, 'create', { ...LONG, background: true, ...fields }) as Promise<ResponseBody>

/** Reads events in a tab until `stop` of them have come; all of them by default. */
function read(page: Page, method: string, args: unknown[], stop = Infinity) {
  return page.evaluate(
    async ([name, given, count]) => {
      const { openai } = globalThis as unknown as {
        openai: {
          responses: Record<string, (...all: unknown[]) => Promise<AsyncIterable<ResponseEvent>>>
        }
      }
      const events: ResponseEvent[] = []
      for await (const event of await openai.responses[name]!(...given)) {
        events.push(event)
        if (events.length >= count) break
      }
      return events
    },
    [method, args, stop === Infinity ? Number.MAX_SAFE_INTEGER : stop] as const,
  )
}

const follow = (page: Page, id: string, after?: number) =>
  read(page, 'retrieve', [
    id,
    { stream: true, ...(after !== undefined && { starting_after: after }) },
  ])

const textOf = (events: readonly ResponseEvent[]): string =>
  events.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('')

/** The text of an undisturbed answer with the same seed. */
async function undisturbedText(page: Page, fields: object = {}): Promise<string> {
  const body = (await call(page, 'create', { ...LONG, ...fields })) as ResponseBody
  expect(body).toMatchObject({ status: 'incomplete', background: false })
  return body.output[0]!.content[0]!.text
}

/** Expects a whole answer, numbered without a gap. */
function expectWhole(events: readonly ResponseEvent[], text: string): void {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()])
  expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
    'response.created',
    'response.queued',
    'response.in_progress',
  ])
  expect(textOf(events)).toBe(text)
  const last = events.at(-1)
  expect(last?.type).toBe('response.incomplete')
  expect(last?.response).toMatchObject({ status: 'incomplete', background: true })
  expect(last?.response?.output[0]?.content[0]?.text).toBe(text)
  expect(last?.response?.usage?.output_tokens).toBe(LONG.max_output_tokens)
}

test('a background response is polled until it is finished', async () => {
  site = await openSite()
  const page = await openTab()
  const text = await undisturbedText(page)
  const created = await create(page)
  expect(created).toMatchObject({ status: 'queued', background: true, output: [] })
  let polled = created
  const statuses = new Set<string>()
  while (['queued', 'in_progress'].includes(polled.status)) {
    polled = (await call(page, 'retrieve', created.id)) as ResponseBody
    statuses.add(polled.status)
  }
  expect(polled).toMatchObject({ id: created.id, status: 'incomplete', output_text: text })
  expect(statuses).toContain('in_progress')
  // Its output can be continued, and its items have the same ids for every reader.
  const next = { input: 'More.', previous_response_id: created.id, max_output_tokens: 5 }
  expect(await call(page, 'create', { ...LONG, ...next })).toMatchObject({ status: 'incomplete' })
  const again = (await follow(page, created.id)).at(-1)?.response?.output
  expect(again?.[0]?.id).toBe(polled.output[0]?.id)
})

test(
  'a reader that leaves continues in another tab, after the last event that it has',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const host = await openTab()
    const text = await undisturbedText(host)
    const reader = await openTab(null)
    const first = await read(reader, 'create', [{ ...LONG, background: true, stream: true }], 8)
    await reader.close()
    const { id } = first[0]!.response!
    const other = await openTab(null)
    const [rest, all, third] = await Promise.all([
      follow(other, id, first.at(-1)!.sequence_number),
      follow(host, id),
      follow(other, id, 2),
    ])
    expectWhole([...first, ...rest], text)
    expect(all).toEqual([...first, ...rest])
    expect(third).toEqual(all.slice(3))
    // It is the same when it is finished.
    expect(await follow(host, id)).toEqual(all)
    expect(await follow(host, id, all.length - 1)).toEqual([])
  },
)

test('the client puts a stream that it reads again together', { tags: ['slow'] }, async () => {
  site = await openSite()
  const page = await openTab()
  const created = await create(page, { max_output_tokens: 20 })
  const { text, first } = await page.evaluate(async (id) => {
    const { openai } = globalThis as unknown as { openai: import('openai').OpenAI }
    const stream = openai.responses.stream({ response_id: id, starting_after: 3 })
    const numbers: number[] = []
    stream.on('event', (event) => numbers.push(event.sequence_number))
    return { text: (await stream.finalResponse()).output_text, first: numbers[0] }
  }, created.id)
  expect(first).toBe(4)
  expect(text).toBe(((await call(page, 'retrieve', created.id)) as ResponseBody).output_text)
})

test('the next host continues by itself, and readers with it', { tags: ['slow'] }, async () => {
  site = await openSite()
  const first = await openTab()
  const text = await undisturbedText(first)
  const second = await openTab()
  const third = await openTab()
  const reader = await openTab(null)
  const created = await create(reader)
  const reading = follow(reader, created.id)
  await read(reader, 'retrieve', [created.id, { stream: true }], 12)
  await first.close()
  await read(reader, 'retrieve', [created.id, { stream: true, starting_after: 20 }], 12)
  await second.close()
  const events = await reading
  expectWhole(events, text)
  expect(await follow(third, created.id)).toEqual(events)
  expect(threadsOf(third)).toContain('/inorigin/model-worker.js')
})

test('the browser is restarted with the same profile', { tags: ['slow'] }, async () => {
  profile = await mkdtemp(join(tmpdir(), 'inorigin-profile-'))
  site = await openSite({ profile })
  const host = await openTab()
  const text = await undisturbedText(host)
  const args = [{ ...LONG, background: true, stream: true }]
  const before = await read(host, 'create', args, 12)
  const { id } = before[0]!.response!
  await site.context.close()
  const restarted = await chromium.launchPersistentContext(profile, chromiumLaunch())
  try {
    const next = await openTab({ device: 'wasm' }, 'k', restarted)
    const rest = await follow(next, id, before.at(-1)!.sequence_number)
    expectWhole([...before, ...rest], text)
  } finally {
    await restarted.close()
  }
})

test('a response is canceled, and deleted', { tags: ['slow'] }, async () => {
  site = await openSite()
  const page = await openTab()
  const created = await create(page)
  const reading = follow(page, created.id)
  await read(page, 'retrieve', [created.id, { stream: true }], 6)
  const canceled = (await call(page, 'cancel', created.id)) as ResponseBody
  expect(canceled).toMatchObject({ id: created.id, status: 'cancelled', usage: null })
  const last = (await reading).at(-1)
  expect(last).toMatchObject({ type: 'response.incomplete', response: { status: 'cancelled' } })
  // A second time changes nothing.
  expect(await call(page, 'cancel', created.id)).toEqual(canceled)

  const other = await create(page)
  const followed = read(page, 'retrieve', [other.id, { stream: true }]).catch(String)
  await read(page, 'retrieve', [other.id, { stream: true }], 6)
  await call(page, 'delete', other.id)
  expect(await followed).toContain('deleted')
  expect(await call(page, 'retrieve', other.id)).toEqual({
    status: 404,
    code: 'response_not_found',
  })
  // The model is free again.
  await undisturbedText(page, { max_output_tokens: 5 })
})

test(
  'each API key has its own responses, and room for 16 that run',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const options = { device: 'wasm', apiKeys: ['one', 'two'] } as const
    const one = await openTab(options, 'one')
    const two = await openTab(null, 'two')
    const created = await create(one)
    const missing = { status: 404, code: 'response_not_found' }
    for (const method of ['retrieve', 'cancel', 'delete'])
      expect(await call(two, method, created.id)).toEqual(missing)
    expect(await call(two, 'retrieve', created.id, { stream: true })).toEqual(missing)
    expect(await call(two, 'create', { ...LONG, previous_response_id: created.id })).toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    })
    // None of them ends before the last one was created.
    for (let count = 1; count < 16; count += 1) await create(one, { max_output_tokens: 1_000 })
    expect(await create(one)).toEqual({ status: 429, code: 'background_full' })
    expect(await create(two, { max_output_tokens: 1 })).toMatchObject({ status: 'queued' })
    expect(await create(two, { store: false })).toMatchObject({ status: 400 })
    expect(await create(two, { input: 'word '.repeat(9_000) })).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    })
    const usage = await one.evaluate(async () => {
      const { server } = globalThis as unknown as { server: import('../../src/index.ts').Server }
      const { responseBytes: before } = await server.storage.usage()
      await server.storage.clearResponses()
      return { before, after: (await server.storage.usage()).responseBytes }
    })
    expect(usage.before).toBeGreaterThan(16_000)
    expect(usage.after).toBe(0)
    expect(await call(one, 'retrieve', created.id)).toEqual(missing)
  },
)
