/** Predictions over HTTP: their place in the queue, and their inputs. */
import { expect, test } from 'vitest'
import { createHttpPredictors } from '../../../src/host/requests/predictors.ts'
import type { Caller, Control, PredictionResult, Predictor } from '../../../src/types/index.ts'
import { AREA } from '../wire/scripted-host.ts'

/** Most requests of one client that wait or run, as the queue of predictions has it. */
const MAX_PER_CLIENT = 64

const UNKNOWN_INPUT = { tag: AREA.tag, inputs: { none: 1 }, jsonCount: { values: 1, nodes: 1 } }
const VALID = { ...UNKNOWN_INPUT, inputs: { radius: 2 } }

/** Opens the operations on a predictor that runs `predict`. */
function open(predict: () => Promise<PredictionResult>) {
  const control = { describePredictor: async (): Promise<Predictor> => AREA, predict }
  const predictions = { create: () => Promise.reject(new Error('not called')) }
  return createHttpPredictors(
    { authorize: () => undefined, predictions: predictions as never },
    control as Pick<Control, 'describePredictor' | 'predict'>,
  )
}

const caller = (): Caller => ({ key: null, client: 'tab', signal: new AbortController().signal })

test('a request with an invalid input keeps no place in the queue', async () => {
  const result = { tag: AREA.tag, outputs: { area: 12.5 }, latency: 1, device: 'wasm' } as const
  const { createRemotePrediction } = open(async () => result)
  for (let count = 0; count < MAX_PER_CLIENT; count += 1) {
    await expect(createRemotePrediction(UNKNOWN_INPUT, caller())).rejects.toMatchObject({
      kind: 'invalid_request',
    })
  }
  const { tag, events } = await createRemotePrediction(VALID, caller())
  expect(tag).toBe(AREA.tag)
  const received: unknown[] = []
  for await (const event of events) received.push(event)
  expect(received).toEqual([
    { type: 'finish', results: [expect.objectContaining({ dtype: 'float32' })], latency: 1 },
  ])
})

test('a full queue rejects a request before its inputs are decoded', async () => {
  const { createRemotePrediction } = open(() => new Promise(() => {}))
  for (let count = 0; count < MAX_PER_CLIENT; count += 1)
    void createRemotePrediction(VALID, caller())
  await expect(createRemotePrediction(UNKNOWN_INPUT, caller())).rejects.toMatchObject({
    kind: 'rate_limit',
  })
})
