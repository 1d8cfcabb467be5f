import { expect, test } from 'vitest'
import type { Binding, PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor } from '../../../src/predictor/open-predictor.ts'
import { runtime } from './embedded.ts'

const { signal } = new AbortController()
const load = (name: string) => fetch(`/tmp-real/${name}`).then((response) => response.blob())
const expected = await fetch('/tmp-real/expected.json').then((response) => response.json())
const voice = new Float32Array(await (await load('voice.f32')).arrayBuffer())

async function open(
  model: string,
  signature: PredictorEntry['signature'],
  bindings: Record<string, Binding>,
  states?: PredictorEntry['states'],
) {
  const resources = [
    { type: 'onnx' as const, url: 'm', name: 'm.onnx', bytes: 1, sha256: '0'.repeat(64) },
    { type: 'config' as const, url: 'k', name: 'keys.txt', bytes: 1, sha256: '0'.repeat(64) },
  ]
  const implementation = { id: 'i', engine: 'onnx', device: 'wasm', resources, bindings } as const
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@t/t',
    name: 'T',
    created: '2026-01-01T00:00:00Z',
    signature,
    states,
    implementations: [implementation],
  }
  const files = new Map([
    ['m.onnx', await load(model)],
    ['keys.txt', await load('keys.txt')],
  ])
  return openPredictor({ entry, implementation, files, device: 'wasm', runtime })
}
const far = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Math.max(...Array.from(a, (x, i) => Math.abs(x - (b[i] ?? NaN))))

test('rec', async () => {
  const model = await open(
    'rec.onnx',
    { inputs: [{ name: 'x', type: 'image' }], outputs: [{ name: 'text', type: 'list' }] },
    {
      x: {
        tensor: 'x',
        image: {
          height: 48,
          multipleOf: 8,
          channels: 'bgr',
          order: 'nchw',
          fit: 'pad',
          resample: 'bilinear',
          mean: [0.5],
          std: [0.5],
          padding: { value: [127.5] },
        },
      },
      text: {
        tensor: 'softmax_11.tmp_0',
        steps: [{ step: 'ctc', labels: { file: 'keys.txt' }, space: true }],
      },
    },
  )
  const { outputs, latency } = await model.predict({ x: await load('text.png') }, signal)
  console.log('REC', JSON.stringify(outputs), JSON.stringify(expected.rec), latency)
  const [only] = outputs['text'] as { text: string; score: number }[]
  expect(only?.text).toBe(expected.rec.text)
  expect(only?.score).toBeCloseTo(expected.rec.score, 4)
})
test('det', async () => {
  const model = await open(
    'det.onnx',
    { inputs: [{ name: 'x', type: 'image' }], outputs: [{ name: 'map', type: 'float32' }] },
    {
      x: {
        tensor: 'x',
        image: {
          multipleOf: 32,
          channels: 'bgr',
          order: 'nchw',
          resample: 'bilinear',
          mean: [0.485, 0.456, 0.406],
          std: [0.229, 0.224, 0.225],
        },
      },
      map: { tensor: 'sigmoid_0.tmp_0' },
    },
  )
  const { outputs } = await model.predict({ x: await load('text.png') }, signal)
  const { data, shape } = outputs['map'] as { data: Float32Array; shape: number[] }
  expect(shape).toEqual(expected.det.dims)
  const d = far(
    [...data].filter((_, i) => i % 97 === 0),
    expected.det.values,
  )
  console.log('DET', shape, d)
  expect(d).toBeLessThan(1e-3)
})
test.each([
  ['silero5.onnx', 'v5', 64, [{ input: 'state', output: 'stateN' }], [2, null, 128]],
  [
    'silero4.onnx',
    'v4',
    0,
    [
      { input: 'h', output: 'hn' },
      { input: 'c', output: 'cn' },
    ],
    [2, null, 64],
  ],
] as const)('%s', async (file, key, context, states, shape) => {
  const model = await open(
    file,
    {
      inputs: [
        { name: 'input', type: 'float32' },
        { name: 'sr', type: 'int64', defaultValue: 16000, optional: true },
        ...states.map(({ input }) => ({ name: input, type: 'float32' as const })),
      ],
      outputs: [
        { name: 'output', type: 'float32' },
        ...states.map(({ output }) => ({ name: output, type: 'float32' as const })),
      ],
    },
    {
      input: { tensor: 'input', audio: { rate: 16000, window: 512, ...(context && { context }) } },
      ...Object.fromEntries(
        states.map(({ input }) => [input, { tensor: input, shape: [...shape] }]),
      ),
    },
    [...states],
  )
  const start = performance.now()
  const whole = await model.predict({ input: voice }, signal)
  const took = performance.now() - start
  const { data } = whole.outputs['output'] as { data: Float32Array }
  let state = null
  const pieces: number[] = []
  for (let at = 0; at < voice.length; at += 700) {
    const next = await model.predictNext(
      { input: voice.slice(at, at + 700) },
      state as never,
      signal,
    )
    state = structuredClone(next.state) as never
    pieces.push(...(next.outputs['output'] as { data: Float32Array }).data)
  }
  console.log(
    key,
    data.length,
    far(data, expected[key]),
    pieces.length,
    far(pieces, expected[key]),
    took,
  )
  expect(far(data, expected[key])).toBeLessThan(1e-4)
  expect(far(pieces, expected[key])).toBeLessThan(1e-4)
})
test('resample cost', async () => {
  const { resample } = await import('../../../src/values/resample.ts')
  const rgba = new Uint8ClampedArray(1920 * 1080 * 4).map((_, at) => at % 251)
  const image = { rgba, width: 1920, height: 1080 }
  for (const filter of ['bilinear', 'bicubic', 'lanczos'] as const) {
    resample(image, 224, 224, filter)
    const start = performance.now()
    for (let i = 0; i < 5; i++) resample(image, 224, 224, filter)
    console.log('COST', filter, (performance.now() - start) / 5)
  }
})
