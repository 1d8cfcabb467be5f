/** Sessions, sound, padded batches and masks over the real runtime. */
import { describe, expect, test } from 'vitest'
import type { Binding, ImageLayout, PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor, type OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import { toPageSound } from '../../../src/predictor/page-sound.ts'
import { toTransferable } from '../../../src/predictor/transferable-inputs.ts'
import type { Device } from '../../../src/types/index.ts'
import { type Graph, onnxFile } from '../../support/onnx.ts'
import { runtime, tagsOf } from './embedded.ts'

const { signal } = new AbortController()

interface Given {
  graph: Graph
  signature: PredictorEntry['signature']
  bindings?: Record<string, Binding>
  states?: PredictorEntry['states']
}

function open(
  { graph, signature, bindings, states }: Given,
  device: Device = 'wasm',
): Promise<OpenPredictor> {
  const resources = [
    { type: 'onnx' as const, url: 'm', name: 'm.onnx', bytes: 1, sha256: '0'.repeat(64) },
  ]
  const implementation = { id: 'i', engine: 'onnx', device, resources, bindings } as const
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/carried',
    name: 'Carried',
    created: '2026-01-01T00:00:00Z',
    signature,
    states,
    implementations: [implementation],
  }
  const files = new Map([['m.onnx', new Blob([onnxFile(graph)])]])
  return openPredictor({ entry, implementation, files, device, runtime })
}

/** A model that adds the sum of a window to its state, as a voice detector would. */
const SUMMING: Given = {
  graph: {
    inputs: [
      { name: 'x', type: 'float32', shape: [1, 'n'] },
      { name: 'h', type: 'float32', shape: ['batch', 1] },
    ],
    outputs: [
      { name: 'y', type: 'float32', shape: [1, 1] },
      { name: 'hn', type: 'float32', shape: [1, 1] },
    ],
    nodes: [
      { type: 'ReduceSum', inputs: ['x'], outputs: ['s'], attributes: { keepdims: 1 } },
      { type: 'Add', inputs: ['s', 'h'], outputs: ['hn'] },
      { type: 'Identity', inputs: ['hn'], outputs: ['y'] },
    ],
  },
  signature: {
    inputs: [
      { name: 'x', type: 'float32' },
      { name: 'h', type: 'float32' },
    ],
    outputs: [
      { name: 'y', type: 'float32' },
      { name: 'hn', type: 'float32' },
    ],
  },
  states: [{ input: 'h', output: 'hn' }],
}

const heard = (window?: number): Given => ({
  ...SUMMING,
  bindings: { x: { tensor: 'x', audio: { rate: 8000, window } } },
})

describe('a state', () => {
  test('begins with zeros, is carried by a session, and travels as a tensor without one', async () => {
    const model = await open(SUMMING)
    const first = await model.predictNext({ x: [1, 2] }, null, signal)
    expect(first.outputs).toEqual({ y: { data: Float32Array.of(3), shape: [1, 1] } })
    const second = await model.predictNext(
      { x: [4] },
      structuredClone(first.state as never),
      signal,
    )
    expect(second.outputs).toEqual({ y: { data: Float32Array.of(7), shape: [1, 1] } })
    const { outputs } = await model.predict({ x: [1] }, signal)
    expect(outputs['hn']).toEqual({ data: Float32Array.of(1), shape: [1, 1] })
    const next = await model.predict({ x: [1], h: outputs['hn'] }, signal)
    expect(next.outputs['y']).toEqual({ data: Float32Array.of(2), shape: [1, 1] })
    await model.close()
  })

  test('of an unknown output is refused', async () => {
    const wrong = { ...SUMMING, states: [{ input: 'h', output: 'z' }] }
    await expect(open(wrong)).rejects.toMatchObject({
      code: 'predictor_unusable',
      param: 'states.h',
      message: expect.stringContaining('there is no output z'),
    })
  })
})

describe('sound', () => {
  test('of a whole clip has an output for each window, and the last state', async () => {
    const model = await open(heard(2))
    const { outputs } = await model.predict({ x: Float32Array.of(1, 1, 1, 1, 1) }, signal)
    expect(outputs).toEqual({
      y: { data: Float32Array.of(2, 4, 5), shape: [3, 1, 1] },
      hn: { data: Float32Array.of(5), shape: [1, 1] },
    })
    await model.close()
  })

  for (const used of ['wasm', 'webgpu'] as const) {
    const options = { tags: tagsOf(used), timeout: 300_000 }
    test(`of a stream fills windows over several calls on ${used}`, options, async () => {
      const model = await open(heard(2), used)
      const first = await model.predictNext({ x: Float32Array.of(1) }, null, signal)
      expect(first.outputs['y']).toMatchObject({ data: new Float32Array(0) })
      const chunk = { x: Float32Array.of(1, 1, 1, 1) }
      const second = await model.predictNext(chunk, first.state as never, signal)
      expect(second.outputs['y']).toEqual({ data: Float32Array.of(2, 4), shape: [2, 1, 1] })
      // The fifth sample of the first two calls fills a window with this one.
      const third = await model.predictNext(
        { x: Float32Array.of(0.5) },
        structuredClone(second.state as never),
        signal,
      )
      expect(third.outputs['y']).toEqual({ data: Float32Array.of(5.5), shape: [1, 1, 1] })
      expect(third.device).toBe(used)
      await model.close()
    })
  }

  test('of an AudioBuffer is mixed and converted', async () => {
    const buffer = new AudioBuffer({ length: 4800, numberOfChannels: 2, sampleRate: 48_000 })
    buffer.getChannelData(0).fill(0.5)
    const plain = await toTransferable({ x: buffer })
    expect(plain['x']).toEqual({ data: new Float32Array(4800).fill(0.25), sampleRate: 48_000 })
    const model = await open(heard())
    const { outputs } = await model.predict(structuredClone(plain), signal)
    const { data } = outputs['y'] as { data: Float32Array }
    // 800 samples of 0.25 at 8 kHz.
    expect(data[0]).toBeCloseTo(200, 0)
    await model.close()
  })

  test('of AudioData is read, and it stays open', async () => {
    const data = Float32Array.of(1, 2, 3, 4)
    const audio = new AudioData({
      format: 'f32-planar',
      sampleRate: 8000,
      numberOfFrames: 4,
      numberOfChannels: 1,
      timestamp: 0,
      data,
    })
    const model = await open(heard())
    const { outputs } = await model.predict({ x: audio }, signal)
    expect(outputs['y']).toEqual({ data: Float32Array.of(10), shape: [1, 1] })
    expect(audio.format).toBe('f32-planar')
    audio.close()
    await expect(model.predict({ x: audio }, signal)).rejects.toThrow('was closed')
    await model.close()
  })

  test('of a WAV file has its samples, at the rate of the file', async () => {
    const bytes = new Uint8Array(48)
    const view = new DataView(bytes.buffer)
    const text = { 0: 'RIFF', 8: 'WAVEfmt ', 36: 'data' }
    for (const [at, marks] of Object.entries(text))
      bytes.set(new TextEncoder().encode(marks), Number(at))
    for (const [at, value] of [
      [4, 40],
      [16, 16],
      [24, 8000],
      [28, 16_000],
      [40, 4],
    ] as const)
      view.setUint32(at, value, true)
    // Whole numbers, 1 channel, 2 bytes a frame, 16 bits, and two samples.
    for (const [at, value] of [
      [20, 1],
      [22, 1],
      [32, 2],
      [34, 16],
      [44, 0x4000],
      [46, 0x2000],
    ] as const)
      view.setUint16(at, value, true)
    const sound = await toPageSound(new Blob([bytes], { type: 'audio/wav' }), 'inputs.x')
    expect(sound.sampleRate).toBe(8000)
    expect([...sound.data].map((sample) => Math.round(sample * 1000))).toEqual([500, 250])
  })

  test('that the browser cannot decode is refused by name', async () => {
    const file = new Blob(['no sound'], { type: 'audio/ogg' })
    await expect(toPageSound(file, 'inputs.x')).rejects.toThrow(
      'inputs.x: this browser cannot decode its sound (audio/ogg).',
    )
  })
})

test('a batch of images with a fixed height is padded to the widest', async () => {
  const image: ImageLayout = {
    height: 2,
    channels: 'bgr',
    order: 'nhwc',
    scale: 1,
    fit: 'pad',
    resample: 'bilinear',
    padding: { value: [9] },
  }
  const port = { type: 'float32', shape: ['n', 2, 'w', 3] } as const
  const model = await open({
    graph: {
      inputs: [{ name: 'x', ...port }],
      outputs: [{ name: 'y', ...port }],
      nodes: [{ type: 'Identity', inputs: ['x'], outputs: ['y'] }],
    },
    signature: {
      inputs: [{ name: 'x', type: 'image' }],
      outputs: [{ name: 'y', type: 'float32' }],
    },
    bindings: { x: { tensor: 'x', image } },
  })
  const filled = (width: number, height: number): ImageData => {
    const pixels = new ImageData(width, height)
    for (let at = 0; at < pixels.data.length; at += 4) pixels.data.set([1, 2, 3, 255], at)
    return pixels
  }
  const { outputs } = await model.predict({ x: [filled(4, 4), filled(3, 2)] }, signal)
  const [pixel, padding] = [
    [3, 2, 1],
    [9, 9, 9],
  ]
  const narrow = [pixel, pixel, padding, pixel, pixel, padding].flat()
  const wide = Array.from({ length: 6 }, () => pixel).flat()
  const { data, shape } = outputs['y'] as { data: Float32Array; shape: number[] }
  expect(shape).toEqual([2, 2, 3, 3])
  expect([...data].map(Math.round)).toEqual([...narrow, ...wide])
  await model.close()
})

test('a mask is an image', async () => {
  const port = { type: 'float32', shape: [1, 1, 1, 3] } as const
  const model = await open({
    graph: {
      inputs: [{ name: 'x', ...port }],
      outputs: [{ name: 'y', ...port }],
      nodes: [{ type: 'Sigmoid', inputs: ['x'], outputs: ['y'] }],
    },
    signature: {
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: [{ name: 'y', type: 'image' }],
    },
    bindings: { y: { tensor: 'y', steps: [{ step: 'mask', threshold: 0.5 }] } },
  })
  const { outputs } = await model.predict({ x: [-1, 0, 1] }, signal)
  const mask = outputs['y'] as ImageData
  expect([mask.width, mask.height]).toEqual([3, 1])
  expect([...mask.data]).toEqual([0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255])
  await model.close()
})
