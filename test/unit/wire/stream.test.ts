/** Bodies of responses: they take one event at a time, and end the work when nobody reads them. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { AcceptedEvent, Caller, GenerationEvent } from '../../../src/types/index.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { chatOf, HELLO, messageOf, scriptedHost, send, USAGE } from './scripted-host.ts'

const chat = { path: '/v1/chat/completions', body: chatOf({ stream: true }) }
const message = { path: '/v1/messages', body: messageOf({ stream: true }) }
const json = { path: '/v1/messages', body: messageOf({ stream: false }) }

const ACCEPTED: AcceptedEvent = { type: 'accepted', ignored: [] }

/** A host whose generation waits for `emit`, and a record of how it ends. */
function slowHost() {
  const seen = { caller: null as Caller | null, waiting: 0, returned: 0 }
  const queue: Array<(result: IteratorResult<GenerationEvent>) => void> = []
  let isAccepted = false
  const events: AsyncIterable<AcceptedEvent | GenerationEvent> = {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        if (!isAccepted) {
          isAccepted = true
          return Promise.resolve({ value: ACCEPTED })
        }
        seen.waiting++
        return new Promise((resolve, reject) => {
          queue.push(resolve)
          seen.caller?.signal.addEventListener('abort', () => reject(seen.caller?.signal.reason))
        })
      },
      return: () => {
        seen.returned++
        return Promise.resolve({ done: true, value: undefined })
      },
    }),
  }
  const host = scriptedHost({
    overrides: {
      generate(_, caller) {
        seen.caller = caller
        return Promise.resolve({ events })
      },
    },
  })
  return { host, seen, emit: (value: GenerationEvent) => queue.shift()?.({ done: false, value }) }
}

const settle = () => new Promise((resolve) => setTimeout(resolve))

function readerOf(response: Response): ReadableStreamDefaultReader<Uint8Array> {
  if (response.body === null) throw new Error('no body')
  return response.body.getReader()
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  return new TextDecoder().decode((await reader.read()).value)
}

/** Opens a response of the slow host, and begins to read it. */
async function openSlow({ path, body }: typeof chat, signal?: AbortSignal) {
  const slow = slowHost()
  const reader = readerOf(await send(slow.host, path, { body, signal }))
  const pending = reader.read()
  await settle()
  expect(slow.seen.waiting).toBe(1)
  return { ...slow, reader, pending }
}

const ABORTED = expect.objectContaining({ name: 'AbortError' })

describe('a stream', () => {
  it.each([chat, message])(
    'of $path takes an event when its reader wants one',
    async ({ path, body }) => {
      const host = scriptedHost()
      const reader = readerOf(await send(host, path, { body }))
      await settle()
      expect(host.read).toBe(0)
      for (let taken = 1; taken <= HELLO.length; taken++) {
        expect(await read(reader)).not.toBe('')
        await settle()
        expect(host.read).toBe(taken)
      }
      expect(await reader.read()).toEqual({ done: true, value: undefined })
      expect(host.returned).toBe(true)
    },
  )

  it('sends each event before it waits for the next', async () => {
    const { host, emit } = slowHost()
    const reader = readerOf(await send(host, message.path, { body: message.body }))
    for (const event of HELLO as GenerationEvent[]) {
      const chunk = read(reader)
      await settle()
      emit(event)
      expect(await chunk).toMatch(/\n\n$/)
    }
  })

  it('that is canceled aborts its work after `cancel` has returned', async () => {
    const { host, seen } = slowHost()
    const response = await send(host, chat.path, { body: chat.body })
    const order: string[] = []
    seen.caller?.signal.addEventListener('abort', () => order.push('aborted'))
    const canceled = response.body?.cancel()
    order.push('returned')
    await canceled
    expect(order).toEqual(['returned', 'aborted'])
  })

  it('that is canceled between two events ends the work', async () => {
    const host = scriptedHost()
    const reader = readerOf(await send(host, chat.path, { body: chat.body }))
    await reader.read()
    await reader.read()
    await reader.cancel()
    await settle()
    expect(host.callers[0]?.signal.aborted).toBe(true)
    expect([host.returned, host.read]).toEqual([true, 2])
  })

  it('is complete although its request is aborted afterwards', async () => {
    const abort = new AbortController()
    const sent = { body: message.body, signal: abort.signal }
    const raw = await (await send(scriptedHost(), message.path, sent)).text()
    abort.abort()
    expect(checkMessageStream(raw).text).toBe('Hello there')
  })
})

describe.each([chat, message, json])('the work of $path, $body.stream', (sent) => {
  it('ends at once when its body is canceled', async () => {
    const { seen, reader, pending } = await openSlow(sent)
    await reader.cancel()
    expect(seen.caller?.signal.aborted).toBe(true)
    expect(seen.returned).toBe(1)
    expect(await pending).toEqual({ done: true, value: undefined })
  })

  it('ends when its body is canceled before it is read', async () => {
    const { host, seen } = slowHost()
    const response = await send(host, sent.path, { body: sent.body })
    await response.body?.cancel()
    expect([seen.caller?.signal.aborted, seen.returned]).toEqual([true, 1])
  })

  it('ends when its request is aborted', async () => {
    const abort = new AbortController()
    const { seen, pending } = await openSlow(sent, abort.signal)
    abort.abort()
    await expect(pending).rejects.toThrow(ABORTED)
    expect([seen.caller?.signal.aborted, seen.returned]).toEqual([true, 1])
  })
})

it('a request that only its response refers to is not garbage collected', async () => {
  const { host, seen } = slowHost()
  const abort = new AbortController()
  const response = await send(host, chat.path, { body: chat.body, signal: abort.signal })
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  for (let round = 0; round < 5; round++) {
    collectGarbage()
    await settle()
  }
  abort.abort()
  expect(seen.caller?.signal.aborted).toBe(true)
  await expect(response.text()).rejects.toThrow('aborted')
})

describe('a request that is aborted', () => {
  it('before it is accepted rejects, as fetch does', async () => {
    const abort = new AbortController()
    const generate = (_: unknown, { signal }: Caller) =>
      new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      )
    const sent = { body: chat.body, signal: abort.signal }
    const answer = send(scriptedHost({ overrides: { generate } }), chat.path, sent)
    await settle()
    abort.abort()
    await expect(answer).rejects.toThrow(ABORTED)
  })

  it('before it is sent never reaches the host', async () => {
    const host = scriptedHost()
    const sent = { body: chat.body, signal: AbortSignal.abort() }
    await expect(send(host, chat.path, sent)).rejects.toThrow(ABORTED)
    expect(host.requests).toEqual([])
  })
})

describe('a generation', () => {
  it('that cannot even be left does no harm', async () => {
    let isAccepted = false
    const events: AsyncIterable<AcceptedEvent> = {
      [Symbol.asyncIterator]: () => ({
        async next() {
          isAccepted = !isAccepted
          if (isAccepted) return { value: ACCEPTED }
          throw new InoriginError('internal', 'Broken.')
        },
        return: () => Promise.reject(new Error('Broken too.')),
      }),
    }
    const host = scriptedHost({ overrides: { generate: async () => ({ events }) } })
    const answer = () => send(host, message.path, { body: message.body })
    const { error } = checkMessageStream(await (await answer()).text())
    expect(error).toMatchObject({ message: 'Broken.' })
    await (await answer()).body?.cancel()
    await settle()
  })

  it('of many small pieces is whole', async () => {
    const pieces = 5000
    const script: GenerationEvent[] = [
      { type: 'start', promptTokens: 12, cachedTokens: 5 },
      ...Array.from({ length: pieces }, (): GenerationEvent => ({ type: 'text', text: 'x' })),
      { type: 'finish', reason: 'length', stopSequence: null, usage: USAGE },
    ]
    const answer = (body: object) => send(scriptedHost({ script }), message.path, { body })
    const raw = await (await answer(message.body)).text()
    expect(checkMessageStream(raw).text).toHaveLength(pieces)
    expect((await (await answer(json.body)).json()).content[0].text).toHaveLength(pieces)
  })
})
