/** Background responses on a real database, of hosts that come one after the other. */
import { expect, test } from 'vitest'
import { BackgroundResponses } from '../../src/host/requests/background.ts'
import type { BackgroundLimits } from '../../src/store/background-records.ts'
import type { Database } from '../../src/store/database.ts'
import { raiseEpoch } from '../../src/store/fence.ts'
import type {
  AcceptedEvent,
  BackgroundEvent,
  BackgroundResponse,
  GenerationEvent,
  GenerationRequest,
  Host,
} from '../../src/types/index.ts'
import { freshDatabase } from './store/fixture.ts'

const LIMITS: BackgroundLimits = {
  responsesPerKey: 3,
  bytesPerKey: 20_000,
  runningPerKey: 2,
  bytesTotal: 100_000,
}
const START: GenerationEvent = { type: 'start', promptTokens: 5, cachedTokens: 0 }
const FINISH: GenerationEvent = {
  type: 'finish',
  reason: 'stop',
  stopSequence: null,
  usage: { promptTokens: 5, cachedTokens: 0, completionTokens: 4, reasoningTokens: 0 },
}
/** Four words, as each host generates them. */
const WORDS = [1, 2, 3, 4].map((token): GenerationEvent => {
  return { type: 'text', text: `w${token} `, tokens: [token] }
})

const callerOf = (key: string | null = null) => ({ key, signal: new AbortController().signal })

type TestHost = BackgroundResponses & { requests: GenerationRequest[] }

/** Creates a response in the background of a host. */
function create({ methods }: TestHost, id = 'resp_1'): Promise<unknown> {
  const request = { model: '@a/b', messages: [], sampling: {}, stop: [] }
  const response: BackgroundResponse = { id, createdAt: 1, request, fields: {}, input: [] }
  return methods.createBackground(response, callerOf())
}

/** Elects a host whose model generates `events`, and then nothing more unless they end. */
async function elect(
  database: Database,
  events: readonly GenerationEvent[],
  error?: Error,
): Promise<TestHost> {
  const requests: GenerationRequest[] = []
  const generate: Host['generate'] = async (request, { signal }) => {
    requests.push(request)
    const generated = async function* (): AsyncGenerator<AcceptedEvent | GenerationEvent> {
      yield { type: 'accepted', ignored: [] }
      yield* structuredClone(events)
      if (error) throw error
      if (events.at(-1)?.type === 'finish') return
      await new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      )
    }
    return { events: generated() }
  }
  const epoch = await raiseEpoch(database)
  const store = { database, epoch: async () => epoch, limits: LIMITS }
  return Object.assign(new BackgroundResponses(store, generate), { requests })
}

/** Reads a response until the event that `isLast` accepts. */
async function read(
  host: TestHost,
  isLast: (event: BackgroundEvent, all: BackgroundEvent[]) => boolean = ({ type }) =>
    type === 'finish',
  id = 'resp_1',
): Promise<BackgroundEvent[]> {
  const all: BackgroundEvent[] = []
  for await (const event of (await host.methods.followBackground(id, 0, callerOf())).events) {
    all.push(event)
    if (isLast(event, all)) break
  }
  return all
}

const textOf = (events: readonly BackgroundEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')

test('the next host continues from the stored tokens, and the earlier one writes no more', async () => {
  const database = freshDatabase()
  const first = await elect(database, [START, ...WORDS.slice(0, 2)])
  await create(first)
  const before = await read(first, (_, all) => textOf(all) === 'w1 w2 ')

  const second = await elect(database, [START, ...WORDS, FINISH])
  await expect(first.methods.cancelBackground('resp_1', callerOf())).rejects.toMatchObject({
    code: 'host_replaced',
  })
  await second.resume()
  const all = await read(second)
  expect(all.slice(0, before.length)).toEqual(before)
  expect(textOf(all)).toBe('w1 w2 w3 w4 ')
  expect(all.filter(({ type }) => type === 'start')).toHaveLength(1)
  expect(second.requests[0]).toMatchObject({
    resumeTokens: [1, 2],
    sampling: { seed: first.requests[0]?.sampling.seed },
  })
  // The tokens of the log are those of the answer, so a third host could continue it as well.
  expect(all.flatMap((event) => ('tokens' in event && event.tokens) || [])).toEqual([1, 2, 3, 4])
  // A host that comes later has nothing to do.
  const third = await elect(database, [])
  await third.resume()
  expect(third.requests).toEqual([])
})

test('a response fails after five hosts that stored nothing of it', async () => {
  const database = freshDatabase()
  const first = await elect(database, [START])
  await create(first)
  await read(first, ({ type }) => type === 'start')
  for (let count = 0; count < 5; count += 1) await (await elect(database, [])).resume()
  const last = await elect(database, [])
  await last.resume()
  expect((await read(last)).at(-1)).toMatchObject({
    reason: 'failed',
    error: { code: 'host_gone' },
  })
})

test('the next host does not mix an answer of a server with another one', async () => {
  const database = freshDatabase()
  const far: GenerationEvent[] = [
    { type: 'served_by', servedBy: 'upstream' },
    START,
    { type: 'text', text: 'far' },
  ]
  const first = await elect(database, far)
  await create(first)
  await read(first, (_, all) => textOf(all) === 'far')
  const second = await elect(database, [START, ...WORDS, FINISH])
  await second.resume()
  const all = await read(second)
  expect([textOf(all), second.requests]).toEqual(['far', []])
  expect(all.at(-1)).toMatchObject({ reason: 'failed', error: { code: 'host_gone' } })
})

test('an error of the model is the last event', async () => {
  const host = await elect(freshDatabase(), [START, ...WORDS], new Error('It broke.'))
  await create(host)
  const events = await read(host)
  expect(textOf(events)).toBe('w1 w2 w3 w4 ')
  expect(events.at(-1)).toMatchObject({ reason: 'failed', error: { message: 'It broke.' } })
})

test('responses of other keys do not exist, and the oldest finished one makes room', async () => {
  const host = await elect(freshDatabase(), [START, ...WORDS, FINISH])
  const { methods } = host
  for (const id of ['resp_1', 'resp_2', 'resp_3', 'resp_4']) {
    await create(host, id)
    await read(host, undefined, id)
  }
  const found = await Promise.all(
    [1, 2, 3, 4].map((number) => methods.getBackground(`resp_${number}`, callerOf())),
  )
  expect(found.map((log) => log?.response.id)).toEqual([undefined, 'resp_2', 'resp_3', 'resp_4'])
  for (const key of ['other', '']) {
    expect(await methods.getBackground('resp_4', callerOf(key))).toBe(null)
    expect(await methods.cancelBackground('resp_4', callerOf(key))).toBe(false)
    expect(await methods.deleteBackground('resp_4', callerOf(key))).toBe(false)
    await expect(methods.followBackground('resp_4', 0, callerOf(key))).rejects.toMatchObject({
      kind: 'not_found',
    })
  }
})

test('running responses are limited, and one that grows too large fails', async () => {
  const database = freshDatabase()
  const host = await elect(database, [START])
  await create(host)
  await create(host, 'resp_2')
  const third = create(host, 'resp_3')
  await expect(third).rejects.toMatchObject({ kind: 'rate_limit', code: 'background_full' })
  await host.clear()
  const long: GenerationEvent = { type: 'text', text: 'x'.repeat(12_000), tokens: [1] }
  const next = await elect(database, [START, long, FINISH])
  await create(next, 'resp_4')
  expect((await read(next, undefined, 'resp_4')).at(-1)).toMatchObject({
    reason: 'failed',
    error: { code: 'background_full' },
  })
})
