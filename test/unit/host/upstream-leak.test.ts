/** A request that must stay on the device sends no byte to a server, whatever fails. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Embedder, ModelEntry } from '../../../src/catalog/schema.ts'
import { CONDITIONS, type Condition } from '../../../src/catalog/upstream-schema.ts'
import { resolveUpstream } from '../../../src/catalog/upstreams.ts'
import { ERROR_CODES } from '../../../src/error-codes.ts'
import { InoriginError, STATUS, type ErrorKind } from '../../../src/error.ts'
import { createDelivery } from '../../../src/link/delivery.ts'
import { continueGeneration } from '../../../src/link/failover.ts'
import type { Route } from '../../../src/types/index.ts'
import { createChance, type Chance } from '../../support/random.ts'
import {
  chatOf,
  DEVICE_LOST,
  embedder,
  openHost,
  PHASES,
  startFarServer,
  type Fault,
  type Phase,
} from '../../support/routed-host.ts'
import type { UpstreamServer } from '../../support/upstream-server.ts'
import { model } from '../catalog/entries.ts'

let server: UpstreamServer
beforeAll(async () => {
  server = await startFarServer()
})
afterAll(() => server?.close())

/** Reasons why a request stays on the device: its header, the app, the catalog entry, or no server. */
const REASONS = ['header', 'header', 'no consent', 'never', 'none'] as const
type Reason = (typeof REASONS)[number]

const ANY = CONDITIONS.filter((condition) => condition !== 'never')

/** Conditions that depend on a fault: the others have the server answer before one. */
const AFTER_A_FAULT = ANY.filter((one) => one !== 'always' && one !== 'not-loaded')

/** Returns the server as validation leaves it. With no consent, its catalog came from another site. */
function upstreamsFor(reason: Reason | 'allowed', when: readonly Condition[]) {
  if (reason === 'none') return []
  const written = {
    id: 'server',
    engine: 'upstream' as const,
    url: server.url,
    model: 'big',
    when: reason === 'never' ? ['never' as const] : [...when],
    continues: true,
    forwardAuthorization: true,
  }
  const isGiven = reason !== 'no consent'
  const policy = { scope: 'https://app.test/', isGiven, allowed: ['https://other.test'] }
  return [resolveUpstream(written, server.url, policy)]
}

type Opened = ReturnType<typeof openHost>

/** Ways to have a model answer, each of which ends with its response or its error. */
const OPERATIONS = {
  'chat/completions': ({ post }: Opened, body: object, route?: Route) =>
    post('chat/completions', { ...chatOf('@acme/tiny'), ...body }, route),
  messages: ({ post }: Opened, body: object, route?: Route) =>
    post('messages', { ...chatOf('@acme/tiny'), max_tokens: 9, ...body }, route),
  responses: ({ post }: Opened, body: object, route?: Route) =>
    post('responses', { model: '@acme/tiny', input: 'Hi', ...body }, route),
  embeddings: ({ post }: Opened, _body: object, route?: Route) =>
    post('embeddings', { model: '@acme/embed', input: 'Hi' }, route),
  'messages/count_tokens': ({ post, sendHeaders }: Opened, _body: object, route?: Route) => {
    // It has no headers before its answer.
    sendHeaders()
    return post('messages/count_tokens', chatOf('@acme/tiny'), route)
  },
  /** A background response that another host began, and that this one continues. */
  resumption: async ({ generate, sendHeaders }: Opened, _body: object, route?: Route) => {
    const delivery = createDelivery()
    delivery.select({ type: 'start', promptTokens: 1, cachedTokens: 0 })
    delivery.select({ type: 'text', text: 'ne', tokens: [1] })
    const request = { ...chatOf('@acme/tiny'), sampling: {}, stop: [], ...(route && { route }) }
    const caller = { key: 'sk-1', signal: new AbortController().signal }
    try {
      const { events } = await continueGeneration(generate, request as never, caller, delivery)
      sendHeaders()
      for await (const _ of events);
      return { status: 200, served: null }
    } catch (error) {
      return { status: InoriginError.from(error).status, served: null }
    }
  },
}
type Operation = keyof typeof OPERATIONS
const NAMES = Object.keys(OPERATIONS) as Operation[]

const entryFor = (operation: Operation, reason: Reason | 'allowed', when: readonly Condition[]) => {
  const upstreams = upstreamsFor(reason, when)
  return operation === 'embeddings' ? embedder(upstreams) : model({ upstreams })
}

/** Faults after which a server answers or continues, if it may: the ones that the other test must cover. */
const ANSWERED: Record<Operation, readonly Phase[]> = {
  'chat/completions': PHASES.filter((phase) => phase !== 'start'),
  messages: PHASES.filter((phase) => phase !== 'start'),
  responses: PHASES.filter((phase) => phase !== 'start'),
  embeddings: PHASES.filter((phase) => phase !== 'open'),
  'messages/count_tokens': [],
  resumption: PHASES.filter((phase) => phase !== 'select'),
}

test('a server that may answer does so after a fault in each phase', async () => {
  const reached = async (operation: Operation, phase: Phase) => {
    const entry = entryFor(operation, 'allowed', AFTER_A_FAULT)
    const opened = openHost(entry, { phase, error: DEVICE_LOST }, !phase.endsWith('late'))
    await OPERATIONS[operation](opened, { stream: true })
    return opened.seen.headers > 0
  }
  const found = await Promise.all(
    NAMES.map(async (operation) => {
      const isReached = await Promise.all(PHASES.map((phase) => reached(operation, phase)))
      return [operation, PHASES.filter((_, at) => isReached[at])] as const
    }),
  )
  expect(Object.fromEntries(found)).toEqual(ANSWERED)
})

/** Returns any error at all: of any kind and code, or none of inorigin's. */
function pickError({ pick, often }: Chance): unknown {
  if (often(0.1)) return new TypeError('It is a bug.')
  // Most errors of a device are of this kind, which has a server answer.
  const kinds = often(0.5) ? (['unavailable'] as const) : (Object.keys(STATUS) as ErrorKind[])
  return new InoriginError(pick(kinds), 'It failed.', { code: pick(ERROR_CODES) })
}

interface Asked {
  operation: Operation
  reason: Reason
  fault: Fault | null
  entry: ModelEntry | Embedder
  isReady: boolean
  body: object
}

/** Each operation, reason and phase once. */
const GRID = NAMES.flatMap((operation) =>
  REASONS.flatMap((reason) => PHASES.map((phase) => ({ operation, reason, phase }))),
)

/** Returns a request of the grid, or a random one after those. */
function createRequest(chance: Chance, at: number): Asked {
  const { pick, often } = chance
  const { operation, reason, phase } = GRID[at] ?? pick(GRID)
  const isFaulty = at < GRID.length || often(0.9)
  const fault = isFaulty ? { phase, error: pickError(chance) } : null
  const entry = entryFor(operation, reason, ANY)
  return { operation, reason, fault, entry, isReady: often(0.5), body: { stream: often(0.5) } }
}

test('1,000 local-only requests send no byte over all fault paths', async () => {
  const chance = createChance(20)
  const before = server.counts()
  const all = Array.from({ length: 1_000 }, (_, at) => createRequest(chance, at))
  // Many at once, because those that fail late take seconds.
  const answers = await Promise.all(
    all.map(async ({ operation, reason, fault, entry, isReady, body }) => {
      const opened = openHost(entry, fault, isReady)
      const route = reason === 'header' ? 'local' : undefined
      const { status, served } = await OPERATIONS[operation](opened, body, route)
      return { status, served, headers: opened.seen.headers }
    }),
  )
  expect(server.counts()).toEqual(before)
  expect(answers.filter(({ served, headers }) => served === 'upstream' || headers > 0)).toEqual([])
  // They were answered, rejected, and failed in every way.
  const statuses = new Set(answers.map(({ status }) => status))
  expect([...statuses].toSorted()).toEqual([200, ...Object.values(STATUS)].toSorted())
})
