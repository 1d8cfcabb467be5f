/**
 * The public types as an app's editor sees them. `npm run types` checks the statements that only the
 * compiler can check: each `@ts-expect-error` is an error where there is none.
 */
import { expect, expectTypeOf, test } from 'vitest'
import { createModelStore } from '../../src/extras/store.ts'
import { createTestServer, type TestServerOptions } from '../../src/extras/testing/server.ts'
import type {
  Bridge,
  BridgeOptions,
  BridgeState,
  ImportOptions,
  LoadOptions,
  LoadPhase,
  PredictOptions,
  RepairOptions,
  ServeOptions,
  Server,
  Session,
  TracedError,
  TraceEvent,
} from '../../src/index.ts'
import { assertKnownOptions, type OptionNames } from '../../src/validate-arguments.ts'
import type { InoriginOptions } from '../../src/extras/vite/plugin.ts'
import type { AttachOptions } from '../../sw/index.ts'

type EveryOptions = [
  AttachOptions,
  BridgeOptions,
  ImportOptions,
  InoriginOptions,
  LoadOptions,
  PredictOptions,
  RepairOptions,
  ServeOptions,
  TestServerOptions,
]

/** Options that take any name, of which an editor lists none. */
type Unlisted = {
  [Index in keyof EveryOptions]: string extends keyof EveryOptions[Index]
    ? EveryOptions[Index]
    : never
}[number]

test('editors list the names of all options', () => {
  expectTypeOf<Unlisted>().toBeNever()
  expectTypeOf<ServeOptions['device']>().toEqualTypeOf<'auto' | 'webgpu' | 'wasm' | undefined>()
  // @ts-expect-error -- No option has this name.
  const mistyped: ServeOptions = { isolated: true }
  expect(() =>
    assertKnownOptions(mistyped, { isolate: true } as OptionNames<ServeOptions>),
  ).toThrow('Did you mean isolate?')
})

/** Returns what an event says, by fields that only its own kind has. */
function describe(event: TraceEvent): string {
  switch (event.type) {
    case 'host':
      return event.time
    case 'request':
      // @ts-expect-error -- A request has no duration yet.
      return `${event.operation} ${event.milliseconds}`
    case 'response':
      return `${event.operation} ${event.milliseconds}`
    case 'failure':
      return `${event.error.kind} ${event.milliseconds}`
    case 'choice':
      return `${event.tag} ${event.implementation}`
    case 'load':
      if (event.status === 'ended') return event.error.kind
      expectTypeOf(event.status).toEqualTypeOf<'started' | 'ready'>()
      // @ts-expect-error -- Only a load that ended has an error.
      return `${event.tag} ${event.error}`
  }
}

test('events are told apart by a field', () => {
  const time = '2026-11-01T00:00:00Z'
  const load = { type: 'load', tag: '@me/a', implementation: 'q8', device: 'wasm', time } as const
  const error: TracedError = { kind: 'aborted', code: 'load_paused' }
  expect(describe({ ...load, status: 'ended', error })).toBe('aborted')
  expect(describe({ type: 'host', time })).toBe(time)
  expectTypeOf<TraceEvent['type']>().toEqualTypeOf<
    'host' | 'request' | 'response' | 'failure' | 'choice' | 'load'
  >()
  expectTypeOf<BridgeState['status']>().toEqualTypeOf<'connected' | 'reconnecting' | 'closed'>()
  expectTypeOf<string>().not.toExtend<LoadPhase>()
})

test('everything that has close() closes at the end of a block', async () => {
  expectTypeOf<Server>().toExtend<Disposable>()
  expectTypeOf<Session>().toExtend<Disposable>()
  expectTypeOf<Bridge>().toExtend<Disposable>()
  const server = createTestServer({ models: [{ tag: '@me/chat', answers: [] }] })
  const store = createModelStore(async () => server)
  await store.open()
  store[Symbol.dispose]()
  await server.models.load('@me/chat')
  // A closed store follows no loads.
  expect(store.view('@me/chat').state).toBe('remote')
})
