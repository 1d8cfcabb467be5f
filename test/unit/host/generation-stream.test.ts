/** A generation from the asking thread over the host to the worker of its model. */
import { afterEach, expect, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createLatestValue } from '../../../src/host/models/latest-value.ts'
import type { ModelInstance } from '../../../src/host/models/model-instance.ts'
import { MODEL_METHODS, type ModelService } from '../../../src/host/models/model-service.ts'
import type { Lease } from '../../../src/host/models/models.ts'
import { streamGeneration } from '../../../src/host/requests/generation-stream.ts'
import { answer } from '../../../src/link/answer.ts'
import { remote } from '../../../src/link/remote.ts'
import { HOST_METHODS } from '../../../src/types/host.ts'
import type {
  Caller,
  GenerationEvent,
  GenerationRequest,
  Host,
  LoadProgress,
} from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'

const REQUEST: GenerationRequest = {
  model: '@a/b',
  messages: [{ role: 'user', content: 'Hi' }],
  sampling: {},
  stop: [],
}

const step = (phase: LoadProgress['phase']): LoadProgress => ({
  tag: '@a/b',
  phase,
  loadedBytes: 0,
  totalBytes: 1,
  bytesPerSecond: 0,
  remainingSeconds: null,
})

const text = (said: string): GenerationEvent => ({ type: 'text', text: said })

interface FakeModel {
  /** Fails while it loads. */
  loadError?: InoriginError
  /** Promise for which the load waits. */
  loadDelay?: Promise<void>
  generate?: (request: GenerationRequest, caller: Caller) => AsyncIterable<GenerationEvent>
}

/** A host with models, each of which answers one attempt. */
function open(models: readonly FakeModel[]) {
  const seen = { attempts: 0, released: 0, callers: [] as Caller[], explained: [] as unknown[] }
  function createInstance({ loadError, loadDelay, generate = () => write(0) }: FakeModel) {
    const progress = createLatestValue(step('download'))
    const worker: Pick<ModelService, 'generate'> = {
      async generate(request, caller) {
        seen.callers.push(caller)
        return { ignored: ['reasoningBudget'], events: generate(request, caller) }
      },
    }
    return {
      opened: Promise.resolve(),
      progress,
      worker: remote<Pick<ModelService, 'generate'>>(
        {
          connect: (port) => void answer(port, worker, { generate: MODEL_METHODS.generate }),
          livenessLock: null,
          maxAttempts: 1,
          ackTimeoutMs: 1_000,
        },
        { generate: MODEL_METHODS.generate },
      ),
      async load() {
        await loadDelay
        progress.set(step(loadError ? 'compile' : 'ready'))
        if (!loadError) return progress.complete()
        progress.fail(loadError)
        throw loadError
      },
      async explainFailure(error: unknown) {
        seen.explained.push(error)
        return error
      },
    } as unknown as ModelInstance
  }
  const acquireLease = async (): Promise<Lease> => {
    const instance = createInstance(models[seen.attempts++] ?? {})
    let isHeld = true
    const release = () => {
      if (isHeld) seen.released += 1
      isHeld = false
    }
    return { instance, release }
  }
  const host: Pick<Host, 'generate'> = {
    generate: (request, caller) => streamGeneration(acquireLease, request, caller),
  }
  const ask = remote<Pick<Host, 'generate'>>(
    {
      connect: (port) => void answer(port, host, { generate: HOST_METHODS.generate }),
      livenessLock: null,
      client: 'tab',
      maxAttempts: 1,
      ackTimeoutMs: 1_000,
    },
    { generate: HOST_METHODS.generate },
  )
  return { ask, host, seen }
}

const caller = (): Caller => ({ key: 'sk-1', signal: new AbortController().signal })

async function collect(events: AsyncIterable<GenerationEvent>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const event of events)
    all.push(
      event.type === 'progress' ? event.progress.phase : 'text' in event ? event.text : event,
    )
  return all
}

async function* write(count: number): AsyncGenerator<GenerationEvent> {
  for (let number = 0; number < count; number += 1) yield text(String(number))
}

const said = (count: number) => Array.from({ length: count }, (_, index) => String(index))

const untrusted = () => {
  const verdict = { features: null }
  return new InoriginError('unavailable', 'Wrong numbers.', {
    code: 'gpu_untrusted',
    details: { verdict },
  })
}

/** A load that ends when the test says so. */
function slowLoad() {
  let load = (): void => undefined
  const loadDelay = new Promise<void>((resolve) => (load = resolve))
  return { load: () => load(), loadDelay }
}

/** Lets the time pass in which a load that fails at once determines the status. */
async function acceptBeforeLoad(ask: Pick<Host, 'generate'>) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const accepted = ask.generate(REQUEST, caller())
  await arrived()
  vi.advanceTimersByTime(1_000)
  return accepted
}

afterEach(() => {
  vi.useRealTimers()
})

test('the load is reported first, then the model writes to the asking thread', async () => {
  const { load, loadDelay } = slowLoad()
  const { ask, seen } = open([{ loadDelay, generate: () => write(500) }])
  const { ignored, events } = await acceptBeforeLoad(ask)
  setImmediate(load)
  expect(ignored).toEqual(['reasoningBudget'])
  expect(await collect(events)).toEqual(['download', ...said(500)])
  await arrived()
  expect(seen).toMatchObject({ attempts: 1, released: 1, explained: [] })
  expect(seen.callers).toMatchObject([{ key: 'sk-1', client: 'tab' }])
})

test('a caller in the same thread reads the same events', async () => {
  const { host } = open([{ generate: () => write(3) }])
  const { events } = await host.generate(REQUEST, caller())
  expect((await collect(events)).slice(-3)).toEqual(said(3))
})

test.each(['before', 'after'])(
  'a GPU that is rejected %s the headers is not used',
  async (when) => {
    const { load, loadDelay } = slowLoad()
    const failing = { loadDelay, loadError: untrusted(), generate: () => write(9) }
    const { ask, seen } = open([failing, { generate: () => write(100) }])
    if (when === 'before') load()
    const { events } = await acceptBeforeLoad(ask)
    load()
    expect((await collect(events)).slice(-100)).toEqual(said(100))
    expect(seen).toMatchObject({ attempts: 2 })
  },
)

test('files that turn out to be damaged in an answer are left to the asking thread', async () => {
  async function* damaged(): AsyncGenerator<GenerationEvent> {
    yield* write(2)
    throw new InoriginError('unavailable', 'Damaged.', { code: 'storage_damaged' })
  }
  const { ask, seen } = open([{ generate: damaged }, { generate: () => write(100) }])
  const { events } = await ask.generate(REQUEST, caller())
  const texts: unknown[] = []
  const reading = async () => {
    for await (const event of events) if (event.type === 'text') texts.push(event.text)
  }
  await expect(reading()).rejects.toMatchObject({ code: 'storage_damaged' })
  expect(texts).toEqual(said(2))
  expect(seen).toMatchObject({ attempts: 1, explained: [{ code: 'storage_damaged' }] })
})

test('what fails late is explained by the host, after all events', async () => {
  async function* broken(): AsyncGenerator<GenerationEvent> {
    yield* write(200)
    throw new InoriginError('unavailable', 'The device was lost.', { code: 'device_lost' })
  }
  const { ask, seen } = open([{ generate: broken }])
  const { events } = await ask.generate(REQUEST, caller())
  const read: unknown[] = []
  const reading = async () => {
    for await (const event of events) if (event.type === 'text') read.push(event.text)
  }
  await expect(reading()).rejects.toMatchObject({ code: 'device_lost' })
  expect(read).toEqual(said(200))
  expect(seen).toMatchObject({ released: 1, explained: [{ code: 'device_lost' }] })
})

test('leaving ends the model and gives the lease back', async () => {
  async function* endless(): AsyncGenerator<GenerationEvent> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      yield text('on')
    }
  }
  const { ask, seen } = open([{ generate: endless }])
  const { events } = await ask.generate(REQUEST, caller())
  for await (const event of events) if (event.type === 'text') break
  await arrived()
  expect(seen.callers[0]?.signal.aborted).toBe(true)
  expect(seen.released).toBe(1)
})
