/** The inputs of each run of one call: what a caller gives, and what a run leaves to the next one. */
import { expect, test } from 'vitest'
import type { BoundSignature } from '../../../src/predictor/bound.ts'
import { planRuns } from '../../../src/predictor/carry.ts'
import type { Signature } from '../../../src/types/index.ts'

const wave = { name: 'wave', type: 'float32' } as const
const h = { name: 'h', type: 'float32' } as const
const SIGNATURE: Signature = { inputs: [wave, h], outputs: [] }
const SOUND = {
  parameter: wave,
  tensor: 'wave',
  spec: { type: 'float32', shape: [1, null] },
} as const

/** A sound in windows of two samples, and a state of two numbers. */
const BOUND: BoundSignature = {
  inputs: [SOUND, { parameter: h, tensor: 'h', spec: { type: 'float32', shape: [1, 2] } }],
  outputs: [],
  states: [{ input: 'h', output: 'hn', type: 'float32', shape: [1, 2] }],
  sound: { ...SOUND, layout: { rate: 8000, window: 2 }, window: 2 },
}

async function stateOfRuns(given: Record<string, unknown>): Promise<unknown[]> {
  const inputs = { wave: new Float32Array(4), ...given }
  const planned = await planRuns(BOUND, SIGNATURE, inputs, null)
  const left = { h: { data: Float32Array.of(7, 8), shape: [1, 2] } }
  return [planned.check(0, {}), planned.check(1, left)].map((run) => {
    const input = run.get('h')
    return input?.form === 'elements' ? Array.from(input.elements.data as Float32Array) : input
  })
}

test('a state that the caller gives is the one of the first window only', async () => {
  const first = { h: [[5, 6]] }
  expect(await stateOfRuns(first)).toEqual([
    [5, 6],
    [7, 8],
  ])
})

test('no state is zeros', async () => {
  for (const given of [{}, { h: null }, { h: undefined }])
    expect(await stateOfRuns(given)).toEqual([
      [0, 0],
      [7, 8],
    ])
})
