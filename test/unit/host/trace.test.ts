import { expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createTrace, withTrace } from '../../../src/host/requests/trace.ts'
import type { GenerationEvent, HostService, TraceEvent } from '../../../src/types/index.ts'
import { HELLO, scriptedHost, TINY } from '../wire/scripted-host.ts'

const SECRET = 'the secret prompt'

const request = {
  model: TINY.tag,
  messages: [{ role: 'user' as const, content: SECRET }],
  sampling: {},
  stop: [],
}

/** A traced host, and a function that returns the events of its trace so far. */
function open(overrides: Partial<HostService> = {}) {
  const scripted = { ...scriptedHost(), ...overrides } as unknown as HostService
  const trace = createTrace()
  const host = { ...scripted, ...withTrace(scripted, trace) }
  const leaving = new AbortController()
  const events: TraceEvent[] = []
  const reading = (async () => {
    for await (const event of trace.read(leaving.signal)) events.push(event)
  })()
  const finish = async () => {
    await new Promise((resolve) => setTimeout(resolve))
    leaving.abort()
    await reading
    return events
  }
  return { host, finish }
}

const caller = () => ({ key: 'sk-secret', signal: new AbortController().signal })

test('a generation has a request and a response, without its contents and its key', async () => {
  const { host, finish } = open()
  const received: GenerationEvent[] = []
  for await (const event of (await host.generate(request, caller())).events) received.push(event)
  expect(received).toEqual(HELLO)
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
  const { host, finish } = open({ generate: () => Promise.reject(error) })
  await expect(host.generate(request, caller())).rejects.toBe(error)
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
  const { host, finish } = open({ generate: async () => ({ ignored: [], events: failing() }) })
  const read = async (limit: number) => {
    let count = 0
    for await (const _ of (await host.generate(request, caller())).events) {
      if (++count === limit) break
    }
  }
  await expect(read(2)).rejects.toThrow(SECRET)
  await read(1)
  const ends = (await finish()).filter(({ type }) => type === 'response' || type === 'failure')
  expect(ends).toMatchObject([
    { type: 'failure', error: { kind: 'internal', code: null } },
    { type: 'failure', error: { kind: 'aborted' } },
  ])
})

test('a response says where it was answered', async () => {
  async function* events(): AsyncGenerator<GenerationEvent> {
    yield { type: 'served_by', servedBy: 'upstream' }
    yield* (await scriptedHost().generate(request, caller())).events
  }
  const answers = [
    { servedBy: 'local', events: events() },
    { servedBy: 'local', events: (await scriptedHost().generate(request, caller())).events },
  ] as const
  const { host, finish } = open({
    embed: async () => ({ servedBy: 'upstream', events: (async function* () {})() }),
    generate: async () => ({ ignored: [], ...(answers[at++] ?? answers[0]) }),
  })
  let at = 0
  const read = async (stream: Promise<{ events: AsyncIterable<unknown> }>) => {
    for await (const _ of (await stream).events);
  }
  await read(host.generate(request, caller()))
  await read(host.generate(request, caller()))
  await read(host.embed({ model: TINY.tag, input: ['a'] }, caller()))
  const responses = (await finish()).filter(({ type }) => type === 'response')
  expect(responses).toMatchObject(
    ['upstream', 'local', 'upstream'].map((servedBy) => ({ servedBy })),
  )
})
