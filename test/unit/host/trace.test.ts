import { expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { Trace, withTrace } from '../../../src/host/requests/middleware.ts'
import type {
  AcceptedEvent,
  GenerationEvent,
  HostService,
  TraceEvent,
} from '../../../src/types/index.ts'
import { collect, HELLO, scriptedHost, TINY } from '../wire/scripted-host.ts'

const SECRET = 'the secret prompt'

/** A traced host, and a function that returns the events of its trace so far. */
function open(overrides: Partial<HostService> = {}) {
  const scripted = { ...scriptedHost(), ...overrides } as unknown as HostService
  const trace = new Trace()
  const host = withTrace(trace)(scripted)
  const request = {
    model: TINY.tag,
    messages: [{ role: 'user' as const, content: SECRET }],
    sampling: {},
    stop: [],
  }
  const caller = () => ({ key: 'sk-secret', signal: new AbortController().signal })
  const leaving = new AbortController()
  const reading = collect(trace.read(leaving.signal))
  return {
    generate: () => host.generate(request, caller()),
    embed: () => host.embed({ model: TINY.tag, input: ['a'] }, caller()),
    async finish(): Promise<TraceEvent[]> {
      await new Promise((resolve) => setTimeout(resolve))
      leaving.abort()
      return reading
    },
  }
}

test('a generation has a request and a response, without its contents and its key', async () => {
  const { generate, finish } = open()
  expect(await collect((await generate()).events)).toEqual([
    { type: 'accepted', ignored: [] },
    ...HELLO,
  ])
  const events = await finish()
  const id = expect.any(String)
  expect(events).toMatchObject([
    { type: 'host' },
    { type: 'request', id, operation: 'generate', tag: TINY.tag },
    { type: 'response', id, operation: 'generate', milliseconds: expect.any(Number) },
  ])
  expect(JSON.stringify(events)).not.toMatch(/secret|Hello/)
  for (const { time } of events) expect(Date.parse(time)).not.toBeNaN()
})

test('a failure has kind and code, and not the message', async () => {
  const error = new InoriginError('unavailable', SECRET, { code: 'device_lost' })
  const { generate, finish } = open({ generate: () => Promise.reject(error) })
  await expect(generate()).rejects.toBe(error)
  const events = await finish()
  expect(events.at(-1)).toMatchObject({
    type: 'failure',
    error: { kind: 'unavailable', code: 'device_lost' },
  })
  expect(JSON.stringify(events)).not.toContain(SECRET)
})

test('a stream that fails or is left ends its request once', async () => {
  async function* failing(): AsyncGenerator<GenerationEvent> {
    yield { type: 'start', promptTokens: 1, cachedTokens: 0 }
    throw new InoriginError('internal', SECRET)
  }
  const { generate, finish } = open({ generate: async () => ({ events: failing() }) })
  await expect(collect((await generate()).events)).rejects.toThrow(SECRET)
  for await (const _ of (await generate()).events) break
  const ends = (await finish()).filter(({ type }) => type === 'response' || type === 'failure')
  expect(ends).toMatchObject([
    { type: 'failure', error: { kind: 'internal', code: null } },
    { type: 'failure', error: { kind: 'aborted' } },
  ])
})

test('a response says where it was answered', async () => {
  async function* upstream(): AsyncGenerator<GenerationEvent> {
    yield { type: 'served_by', servedBy: 'upstream' }
  }
  async function* local(): AsyncGenerator<AcceptedEvent | GenerationEvent> {
    yield { type: 'accepted', ignored: [], servedBy: 'local' }
    yield* HELLO as GenerationEvent[]
  }
  const answers = [upstream, local]
  const { generate, embed, finish } = open({
    embed: async () => ({ servedBy: 'upstream', events: (async function* () {})() }),
    generate: async () => ({ events: answers.shift()!() }),
  })
  for (const ask of [generate, generate, embed])
    await collect((await ask()).events as AsyncIterable<unknown>)
  const responses = (await finish()).filter(({ type }) => type === 'response')
  const places = ['upstream', 'local', 'upstream']
  expect(responses).toMatchObject(places.map((servedBy) => ({ servedBy })))
})
