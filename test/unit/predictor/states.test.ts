/** States: zeros or the caller's first, then what a run leaves to the next one of a call or session. */
import { describe, expect, test } from 'vitest'
import type { BoundSignature } from '../../../src/predictor/bind.ts'
import { planRuns } from '../../../src/predictor/carry.ts'
import { StateChain } from '../../../src/predictor/session.ts'
import type { SessionPrediction } from '../../../src/types/index.ts'
import { createDeferred } from '../../support/deferred.ts'

describe('A call of two windows begins with the state', () => {
  const wave = { name: 'wave', type: 'float32' } as const
  const h = { name: 'h', type: 'float32' } as const
  const SOUND = {
    parameter: wave,
    tensor: 'wave',
    spec: { type: 'float32', shape: [1, null] },
  } as const

  /** A sound in windows of two samples, and a state of two numbers. */
  const BOUND: BoundSignature = {
    inputs: [SOUND, { parameter: h, tensor: 'h', spec: { type: 'float32', shape: [1, 2] } }],
    settings: [],
    outputs: [],
    states: [{ input: 'h', output: 'hn', type: 'float32', shape: [1, 2] }],
    sound: { ...SOUND, layout: { rate: 8000, window: 2 }, window: 2 },
  }

  test.each([
    [{ h: [[5, 6]] }, [5, 6]],
    [{}, [0, 0]],
    [{ h: null }, [0, 0]],
    [{ h: undefined }, [0, 0]],
  ])('of %j', async (given, first) => {
    const inputs = { wave: new Float32Array(4), ...given }
    const entry = { signature: { inputs: [wave, h], outputs: [] } }
    const planned = await planRuns({ bound: BOUND, entry }, inputs, null)
    const left = { h: { data: Float32Array.of(7, 8), shape: [1, 2] } }
    const states = [planned.check(0, {}), planned.check(1, left)].map((run) => {
      const input = run.get('h')
      return input?.form === 'elements' ? Array.from(input.elements.data as Float32Array) : input
    })
    expect(states).toEqual([first, [7, 8]])
  })
})

describe('A session', () => {
  /** A run that counts in its state. */
  const count = async (state: unknown): Promise<SessionPrediction> => {
    const outputs = { before: state }
    return { tag: '@t/t', outputs, latency: 0, device: 'wasm', state: Number(state ?? 0) + 1 }
  }
  const failed = (): Promise<SessionPrediction> => Promise.reject(new Error('no'))

  test('runs in order with the state of the run before, and hides it', async () => {
    const chain = new StateChain()
    const results = await Promise.all([1, 2, 3].map(() => chain.next(count, undefined)))
    expect(results.map(({ outputs }) => outputs['before'])).toEqual([null, 1, 2])
    expect(results[0]).not.toHaveProperty('state')
  })

  test('keeps its state at a failure, and forgets it at a reset, in order', async () => {
    const chain = new StateChain()
    const [first, second, third] = [count, failed, count].map((run) => chain.next(run, undefined))
    chain.reset()
    const fourth = chain.next(count, undefined)
    await expect(second).rejects.toThrow('no')
    const others = await Promise.all([first, third, fourth])
    expect(others.map((result) => result?.outputs['before'])).toEqual([null, 1, null])
  })

  test('passes the state over a waiting prediction that is canceled', async () => {
    const chain = new StateChain()
    const { promise, resolve } = createDeferred()
    const first = chain.next((state) => promise.then(() => count(state)), undefined)
    const controller = new AbortController()
    const second = chain.next(count, controller.signal)
    controller.abort()
    await expect(second).rejects.toMatchObject({ kind: 'aborted' })
    resolve()
    await first
    expect(await chain.next(count, undefined)).toMatchObject({ outputs: { before: 1 } })
  })

  test('rejects what waits when it is closed', async () => {
    const chain = new StateChain()
    const first = chain.next(count, undefined)
    chain.close()
    await expect(first).rejects.toMatchObject({ kind: 'aborted' })
  })
})
