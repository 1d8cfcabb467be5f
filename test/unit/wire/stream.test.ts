/** How a body is drawn from a generation: one event at a time, and no longer than someone reads. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { Caller, GenerationEvent } from '../../../src/types/index.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { chatOf, HELLO, messageOf, scriptedHost, send } from './scripted-host.ts'

const chat = { path: '/v1/chat/completions', body: chatOf({ stream: true }) }
const message = { path: '/v1/messages', body: messageOf({ stream: true }) }
const json = { path: '/v1/messages', body: messageOf() }

/** A host whose generation stands still until it is told to go on, or to end. */
function slowHost() {
  const told = { caller: null as Caller | null, waiting: 0, returned: 0 }
  const queue: Array<(result: IteratorResult<GenerationEvent>) => void> = []
  const events: AsyncIterable<GenerationEvent> = {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        told.waiting++
        return new Promise((resolve, reject) => {
          queue.push(resolve)
          told.caller?.signal.addEventListener('abort', () => reject(told.caller?.signal.reason))
        })
      },
      return: () => {
        told.returned++
        return Promise.resolve({ done: true, value: undefined })
      },
    }),
  }
  const host = scriptedHost({
    overrides: {
      generate(_, caller) {
        told.caller = caller
        return Promise.resolve({ ignored: [], events })
      },
    },
  })
  return { host, told, emit: (value: GenerationEvent) => queue.shift()?.({ done: false, value }) }
}

const settle = () => new Promise((resolve) => setTimeout(resolve))

function readerOf(response: Response): ReadableStreamDefaultReader<Uint8Array> {
  if (response.body === null) throw new Error('no body')
  return response.body.getReader()
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  return new TextDecoder().decode((await reader.read()).value)
}

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

  it('sends what there is before what there is to wait for', async () => {
    const { host, emit } = slowHost()
    const reader = readerOf(await send(host, message.path, { body: message.body }))
    for (const event of HELLO as GenerationEvent[]) {
      const chunk = read(reader)
      await settle()
      emit(event)
      expect(await chunk).toMatch(/\n\n$/)
    }
  })

  it.each([chat, message, json])(
    'of $path that is cancelled ends the work at once',
    async ({ path, body }) => {
      const { host, told } = slowHost()
      const reader = readerOf(await send(host, path, { body }))
      const pending = reader.read()
      await settle()
      expect(told.waiting).toBe(1)
      await reader.cancel()
      expect(told.caller?.signal.aborted).toBe(true)
      expect(told.returned).toBe(1)
      expect(await pending).toEqual({ done: true, value: undefined })
    },
  )

  it.each([chat, message, json])(
    'of $path that is cancelled before it is read ends the work',
    async ({ path, body }) => {
      const { host, told } = slowHost()
      const response = await send(host, path, { body })
      await response.body?.cancel()
      expect(told.caller?.signal.aborted).toBe(true)
      expect(told.returned).toBe(1)
    },
  )

  it('that is cancelled aborts its work after `cancel` has returned', async () => {
    const { host, told } = slowHost()
    const response = await send(host, chat.path, { body: chat.body })
    const order: string[] = []
    told.caller?.signal.addEventListener('abort', () => order.push('aborted'))
    const cancelled = response.body?.cancel()
    order.push('returned')
    await cancelled
    expect(order).toEqual(['returned', 'aborted'])
  })

  it('that is cancelled between two events ends the work', async () => {
    const host = scriptedHost()
    const reader = readerOf(await send(host, chat.path, { body: chat.body }))
    await reader.read()
    await reader.read()
    await reader.cancel()
    expect(host.returned).toBe(true)
    expect(host.callers[0]?.signal.aborted).toBe(true)
    await settle()
    expect(host.read).toBe(2)
  })

  it.each([chat, message, json])(
    'of $path breaks off when its request is aborted',
    async ({ path, body }) => {
      const { host, told } = slowHost()
      const abort = new AbortController()
      const reader = readerOf(await send(host, path, { body, signal: abort.signal }))
      const pending = reader.read()
      await settle()
      abort.abort()
      await expect(pending).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
      expect(told.caller?.signal.aborted).toBe(true)
      expect(told.returned).toBe(1)
    },
  )

  it('ends well although its request is aborted afterwards', async () => {
    const abort = new AbortController()
    const response = await send(scriptedHost(), message.path, {
      body: message.body,
      signal: abort.signal,
    })
    const raw = await response.text()
    abort.abort()
    expect(checkMessageStream(raw).text).toBe('Hello there')
  })
})

describe('work', () => {
  it('outlives the request that no one but its answer holds', async () => {
    const { host, told } = slowHost()
    const abort = new AbortController()
    const response = await send(host, chat.path, { body: chat.body, signal: abort.signal })
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    for (let round = 0; round < 5; round++) {
      collectGarbage()
      await settle()
    }
    abort.abort()
    expect(told.caller?.signal.aborted).toBe(true)
    await expect(response.text()).rejects.toThrow('aborted')
  })
})

describe('a request that is aborted', () => {
  const aborted = (overrides: object) => {
    const abort = new AbortController()
    const answer = send(scriptedHost({ overrides }), chat.path, {
      body: chat.body,
      signal: abort.signal,
    })
    return { abort, answer }
  }

  it('before it is accepted rejects, as fetch does', async () => {
    const { abort, answer } = aborted({
      generate: (_: unknown, { signal }: Caller) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        ),
    })
    await settle()
    abort.abort()
    await expect(answer).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  })

  it('before it is sent never reaches the host', async () => {
    const host = scriptedHost()
    const signal = AbortSignal.abort()
    await expect(send(host, chat.path, { body: chat.body, signal })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    )
    expect(host.requests).toEqual([])
  })
})

describe('a generation', () => {
  it('that cannot even be abandoned does no harm', async () => {
    const events: AsyncIterable<GenerationEvent> = {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new InoriginError('internal', 'Broken.')),
        return: () => Promise.reject(new Error('Broken too.')),
      }),
    }
    const host = scriptedHost({
      overrides: { generate: () => Promise.resolve({ ignored: [], events }) },
    })
    expect(
      checkMessageStream(await (await send(host, message.path, { body: message.body })).text())
        .error,
    ).toMatchObject({
      message: 'Broken.',
    })
    const response = await send(host, message.path, { body: message.body })
    await response.body?.cancel()
    await settle()
  })

  it('of many small pieces is drawn without holding them', async () => {
    const pieces = 5000
    const script: GenerationEvent[] = [
      { type: 'start', promptTokens: 1, cachedTokens: 0 },
      ...Array.from({ length: pieces }, (): GenerationEvent => ({ type: 'text', text: 'x' })),
      {
        type: 'finish',
        reason: 'length',
        stopSequence: null,
        usage: { promptTokens: 1, cachedTokens: 0, completionTokens: pieces, reasoningTokens: 0 },
      },
    ]
    const host = scriptedHost({ script })
    const raw = await (await send(host, message.path, { body: message.body })).text()
    expect(checkMessageStream(raw).text).toHaveLength(pieces)
    const body = (await (await send(host, json.path, { body: json.body })).json()) as {
      content: Array<{ text: string }>
    }
    expect(body.content[0]?.text).toHaveLength(pieces)
  })
})
