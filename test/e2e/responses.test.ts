/** Responses that are stored, or run in the background: readers, hosts and browsers come and go. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { names } from '../../src/link/protocol.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { endWorker, threadsOf, workersOf } from '../support/dying.ts'
import { fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { bundleSdks } from '../support/sdks.ts'

/**
 * Forbids the guide's end token, so that an answer is as long as its limit. It is long, because tabs
 * are closed while it is written.
 */
const LONG = {
  model: '@inorigin/guide',
  input: 'Tell me all about inorigin.',
  seed: 7,
  temperature: 1,
  max_output_tokens: 500,
  logit_bias: { 2034: -100 },
}
const SLOW = { tags: ['slow'] }

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

interface InPage {
  openai: { responses: Record<string, (...all: unknown[]) => Promise<unknown>> }
  server: Server
}

let script = ''
let site: Site

beforeAll(async () => {
  script = await bundleSdks()
})
afterEach(() => site?.close())

describe('in the background', () => {
  /** Opens a tab with the client. One that does not host only asks. */
  async function openTab(hosts = true, context?: BrowserContext): Promise<Page> {
    const page = await site.open(undefined, context)
    if (hosts) await serveIn(page, { device: 'wasm' })
    await page.addScriptTag({ content: script })
    await page.evaluate(() => {
      const { sdks } = globalThis as unknown as { sdks: { OpenAI: new (o: object) => object } }
      const baseURL = `${location.origin}/v1`
      const settings = { apiKey: 'k', baseURL, dangerouslyAllowBrowser: true, maxRetries: 0 }
      Object.assign(globalThis, { openai: new sdks.OpenAI(settings) })
    })
    return page
  }

  /** Calls a method of `openai.responses`. A refusal becomes its status and code. */
  const call = (page: Page, method: string, ...args: unknown[]): Promise<unknown> =>
    page.evaluate(
      async ([name, given]) => {
        const { openai } = globalThis as unknown as InPage
        return openai.responses[name]!(...given).catch((error) => {
          const { status, code } = error as { status?: number; code?: string }
          if (status === undefined) throw error
          return { status, code }
        })
      },
      [method, args] as const,
    )

  const create = (page: Page, fields: object = {}) =>
    call(page, 'create', { ...LONG, background: true, ...fields }) as Promise<ResponseBody>

  /** Reads events in a tab until `stop` of them have come; all of them by default. */
  const read = (page: Page, method: string, args: unknown[], stop = Number.MAX_SAFE_INTEGER) =>
    page.evaluate(
      async ([name, given, count]) => {
        const { openai } = globalThis as unknown as InPage
        const events: ResponseEvent[] = []
        const stream = await openai.responses[name]!(...given)
        for await (const event of stream as AsyncIterable<ResponseEvent>) {
          events.push(event)
          if (events.length >= count) break
        }
        return events
      },
      [method, args, stop] as const,
    )

  const follow = (page: Page, id: string, after?: number, stop?: number) =>
    read(
      page,
      'retrieve',
      [id, { stream: true, ...(after !== undefined && { starting_after: after }) }],
      stop,
    )

  const textOf = (events: readonly ResponseEvent[]): string =>
    events.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('')

  /** The text of an undisturbed answer with the same seed. */
  async function undisturbedText(page: Page, fields: object = {}): Promise<string> {
    const body = (await call(page, 'create', { ...LONG, ...fields })) as ResponseBody
    expect(body).toMatchObject({ status: 'incomplete', background: false })
    return body.output[0]!.content[0]!.text
  }

  /** Expects a whole answer, numbered without a gap. */
  function expectWhole(
    events: readonly ResponseEvent[],
    text: string,
    tokens = LONG.max_output_tokens,
  ): void {
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
    expect(last?.response?.usage?.output_tokens).toBe(tokens)
  }

  test('a response is polled until it is finished, and continued', SLOW, async () => {
    site = await openSite()
    const page = await openTab()
    const short = { max_output_tokens: 300 }
    const text = await undisturbedText(page, short)
    const created = await create(page, short)
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
    // The client puts a stream that it reads again together.
    const helped = await page.evaluate(async (id) => {
      const { openai } = globalThis as unknown as { openai: import('openai').OpenAI }
      const stream = openai.responses.stream({ response_id: id, starting_after: 3 })
      const numbers: number[] = []
      stream.on('event', (event) => numbers.push(event.sequence_number))
      return [(await stream.finalResponse()).output_text, numbers[0]]
    }, created.id)
    expect(helped).toEqual([text, 4])
  })

  test('a reader that leaves continues in another tab, after its last event', SLOW, async () => {
    site = await openSite()
    const host = await openTab()
    const text = await undisturbedText(host)
    const reader = await openTab(false)
    const first = await read(reader, 'create', [{ ...LONG, background: true, stream: true }], 8)
    await reader.close()
    const { id } = first[0]!.response!
    const other = await openTab(false)
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
  })

  test('the next host continues by itself, and readers with it', SLOW, async () => {
    site = await openSite()
    const [first, second, third] = [await openTab(), await openTab(), await openTab()]
    const reader = await openTab(false)
    // Each host must die before it has computed the whole answer.
    const longer = { max_output_tokens: 1024 }
    const text = await undisturbedText(reader, longer)
    const created = await create(reader, longer)
    const reading = follow(reader, created.id)
    await follow(reader, created.id, undefined, 12)
    await first.close()
    await follow(reader, created.id, 20, 12)
    await second.close()
    const events = await reading
    expectWhole(events, text, longer.max_output_tokens)
    expect(await follow(third, created.id)).toEqual(events)
    expect(threadsOf(third)).toContain('/inorigin/model-worker.js')
  })

  test('the browser is restarted with the same profile', SLOW, async ({ onTestFinished }) => {
    const profile = await mkdtemp(join(tmpdir(), 'inorigin-profile-'))
    onTestFinished(() => rm(profile, { recursive: true }))
    site = await openSite({ profile })
    const host = await openTab()
    const text = await undisturbedText(host)
    const args = [{ ...LONG, background: true, stream: true }]
    const before = await read(host, 'create', args, 12)
    const { id } = before[0]!.response!
    await site.context.close()
    const restarted = await chromium.launchPersistentContext(profile, chromiumLaunch())
    onTestFinished(() => restarted.close())
    const next = await openTab(true, restarted)
    const rest = await follow(next, id, before.at(-1)!.sequence_number)
    expectWhole([...before, ...rest], text)
  })

  test('a response is canceled, and deleted', SLOW, async () => {
    site = await openSite()
    const page = await openTab()
    const created = await create(page)
    const reading = follow(page, created.id)
    await follow(page, created.id, undefined, 6)
    const canceled = (await call(page, 'cancel', created.id)) as ResponseBody
    expect(canceled).toMatchObject({ id: created.id, status: 'cancelled', usage: null })
    const last = (await reading).at(-1)
    expect(last).toMatchObject({ type: 'response.incomplete', response: { status: 'cancelled' } })
    // A second time changes nothing.
    expect(await call(page, 'cancel', created.id)).toEqual(canceled)

    const missing = { status: 404, code: 'response_not_found' }
    const other = await create(page)
    const followed = follow(page, other.id).catch(String)
    await follow(page, other.id, undefined, 6)
    await call(page, 'delete', other.id)
    expect(await followed).toContain('deleted')
    expect(await call(page, 'retrieve', other.id)).toEqual(missing)
    // The model is free again.
    await undisturbedText(page, { max_output_tokens: 5 })
    const bytes = await page.evaluate(async () => {
      const { storage } = (globalThis as unknown as InPage).server
      const { responseBytes: before } = await storage.usage()
      await storage.clearResponses()
      return { before, after: (await storage.usage()).responseBytes }
    })
    expect(bytes).toEqual({ before: expect.any(Number), after: 0 })
    expect(bytes.before).toBeGreaterThan(100)
    expect(await call(page, 'retrieve', created.id)).toEqual(missing)
  })
})

describe('in memory', () => {
  const ANN = { authorization: 'Bearer ann' }
  const BEA = { authorization: 'Bearer bea' }

  async function openTab(): Promise<Page> {
    const page = await site.open()
    await serveIn(page)
    return page
  }

  /** Has the guide answer, and returns the response's id and text. */
  async function respond(page: Page, fields: object = {}): Promise<{ id: string; text: string }> {
    const body = {
      model: '@inorigin/guide',
      input: 'Who are you?',
      max_output_tokens: 16,
      ...fields,
    }
    const { status, text } = await fetchIn(page, '/v1/responses', body, ANN)
    expect([status, text]).toEqual([200, expect.stringContaining('"store":true')])
    const { id, output } = JSON.parse(text)
    return { id, text: output[0].content[0].text }
  }

  async function getStatus(page: Page, id: string, headers = ANN): Promise<number> {
    return (await fetchIn(page, `/v1/responses/${id}`, undefined, headers)).status
  }

  beforeEach(async () => {
    site = await openSite()
  })

  test('the next host has the responses of a closed one, for their key only', async () => {
    const host = await openTab()
    const next = await openTab()
    const response = await respond(host)
    const deleted = await respond(host)
    const deletion = host.evaluate(
      ([path, headers]) => fetch(path, { method: 'DELETE', headers }).then(({ status }) => status),
      [`/v1/responses/${deleted.id}`, ANN] as const,
    )
    expect(await deletion).toBe(200)
    await host.close()

    const retrieved = await fetchIn(next, `/v1/responses/${response.id}`, undefined, ANN)
    expect(retrieved.status).toBe(200)
    expect(JSON.parse(retrieved.text).output[0].content[0].text).toBe(response.text)
    expect(await getStatus(next, response.id, BEA)).toBe(404)
    expect(await getStatus(next, deleted.id)).toBe(404)
    const reply = await respond(next, {
      previous_response_id: response.id,
      input: 'And who else?',
    })
    expect(await getStatus(next, reply.id)).toBe(200)
  })

  test('a tab that joins later gets the responses, too', SLOW, async () => {
    const host = await openTab()
    const { id } = await respond(host)
    const late = await site.open()
    await late.evaluate(
      (channel) => {
        const stored = new Promise((resolve) => {
          new BroadcastChannel(channel).addEventListener('message', ({ data }) => {
            if (data.type === 'stored') resolve(undefined)
          })
        })
        Object.assign(globalThis, { stored })
      },
      names(`${site.url}/`).responses,
    )
    await serveIn(late)
    await late.evaluate(() => Reflect.get(globalThis, 'stored'))
    await host.close()
    expect(await getStatus(late, id)).toBe(200)
  })

  test("a lone tab's host worker ends: its responses stay", SLOW, async () => {
    const page = await openTab()
    const { id } = await respond(page)
    await endWorker(workersOf(page, 'worker.js')[0]!)
    expect(await getStatus(page, id)).toBe(200)
  })
})
