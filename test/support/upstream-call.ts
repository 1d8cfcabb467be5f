/** Requests of inorigin to a real server in the place of an upstream one. */
import type { Upstream } from '../../src/catalog/upstream-schema.ts'
import type { UpstreamCall } from '../../src/engine/upstream/connection.ts'
import { generateUpstream } from '../../src/engine/upstream/index.ts'
import type { InoriginError } from '../../src/error.ts'
import type { GenerationEvent, GenerationRequest } from '../../src/types/index.ts'
import { startUpstream, type Respond } from './upstream-server.ts'

export const REQUEST: GenerationRequest = {
  model: '@a/b',
  messages: [{ role: 'user', content: 'Hi' }],
  sampling: {},
  stop: [],
}

export const MODEL = { maxOutputTokens: 50, thinks: true }

/** Starts a server and returns a call to it. */
export async function openUpstreamCall(respond: Respond, changes: Partial<Upstream> = {}) {
  const server = await startUpstream(respond)
  const abort = new AbortController()
  const call: UpstreamCall = {
    upstream: {
      id: 'server',
      url: server.url,
      model: 'big',
      when: ['always'],
      forwardAuthorization: false,
      continues: false,
      unsupported: [],
      refusal: null,
      ...changes,
    },
    key: 'sk-client',
    signal: abort.signal,
    getHeaders: async () => ({ 'x-app': 'token' }),
  }
  return { call, abort, received: server.received, server }
}

export async function readAll(events: AsyncIterable<GenerationEvent>): Promise<GenerationEvent[]> {
  const all: GenerationEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

/** Resolves with all events of an answer, and the fields that have no effect. */
export async function askUpstream(call: UpstreamCall, request: Partial<GenerationRequest> = {}) {
  const { ignored, events } = await acceptUpstream(call, request)
  return { ignored, events: await readAll(events) }
}

/** Resolves when the server has accepted the request. */
export async function acceptUpstream(
  call: UpstreamCall,
  request: Partial<GenerationRequest> = {},
): Promise<{ ignored: readonly string[]; events: AsyncGenerator<GenerationEvent> }> {
  const events = generateUpstream({ ...REQUEST, ...request }, MODEL, call)
  const { value } = await events.next()
  if (value?.type !== 'accepted') throw new Error('It was not accepted first.')
  // It is accepted once.
  return { ignored: value.ignored, events: events as AsyncGenerator<GenerationEvent> }
}

/** Resolves with the error of the work, which must fail. */
export const failureOf = (work: Promise<unknown>): Promise<InoriginError> =>
  work.then(
    () => Promise.reject(new Error('It did not fail.')),
    (error: InoriginError) => error,
  )
