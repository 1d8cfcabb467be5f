import { describe, expect, test } from 'vitest'
import { parseSound } from '../../../src/predictor/audio.ts'
import { resampleSound } from '../../../src/predictor/resample-sound.ts'
import { cutWindows } from '../../../src/predictor/sound-windows.ts'
import { readWav } from '../../../src/predictor/wav.ts'

/** Samples of a tone of 440 Hz. */
const tone = (sampleRate: number, length: number): Float32Array =>
  Float32Array.from({ length }, (_, at) => Math.sin((2 * Math.PI * 440 * at) / sampleRate))

interface Format {
  code: number
  bits: number
  channels: number
  write: (view: DataView, at: number, sample: number) => void
}

/** Samples of 16 bits in one channel. */
const PCM: Format = {
  code: 1,
  bits: 16,
  channels: 1,
  write: (view, at, sample) => view.setInt16(at, sample, true),
}

/** A WAV file, with a chunk of odd length before the samples. */
function wav(samples: readonly number[], { code, bits, channels, write }: Format): Uint8Array {
  const bytes = new Uint8Array(12 + 24 + 10 + 8 + (samples.length * bits) / 8)
  const view = new DataView(bytes.buffer)
  const mark = (at: number, text: string): void =>
    [...text].forEach((sign, index) => view.setUint8(at + index, sign.charCodeAt(0)))
  mark(0, 'RIFF')
  mark(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, code, true)
  view.setUint16(22, channels, true)
  view.setUint32(24, 8000, true)
  view.setUint16(34, bits, true)
  mark(36, 'LIST')
  view.setUint32(40, 1, true)
  mark(46, 'data')
  view.setUint32(50, (samples.length * bits) / 8, true)
  samples.forEach((sample, index) => write(view, 54 + (index * bits) / 8, sample))
  return bytes
}

describe('a WAV file', () => {
  test.each<[string, Format]>([
    [
      '8 bits',
      {
        code: 1,
        bits: 8,
        channels: 2,
        write: (view, at, one) => view.setUint8(at, one * 128 + 128),
      },
    ],
    [
      '16 bits',
      {
        code: 1,
        bits: 16,
        channels: 2,
        write: (view, at, one) => view.setInt16(at, one * 2 ** 15, true),
      },
    ],
    [
      '24 bits',
      {
        code: 1,
        bits: 24,
        channels: 2,
        write(view, at, one) {
          view.setUint16(at, (one * 2 ** 23) & 0xffff, true)
          view.setInt8(at + 2, Math.floor((one * 2 ** 23) / 2 ** 16))
        },
      },
    ],
    [
      '32 bits',
      {
        code: 1,
        bits: 32,
        channels: 2,
        write: (view, at, one) => view.setInt32(at, one * 2 ** 31, true),
      },
    ],
    [
      'floats',
      { code: 3, bits: 32, channels: 2, write: (view, at, one) => view.setFloat32(at, one, true) },
    ],
    [
      'doubles',
      { code: 3, bits: 64, channels: 2, write: (view, at, one) => view.setFloat64(at, one, true) },
    ],
  ])('of %s', async (_, format) => {
    const bytes = wav([0.5, -0.5, -0.25, 0.75], format)
    expect(readWav(bytes)).toEqual({
      data: [Float32Array.of(0.5, -0.25), Float32Array.of(-0.5, 0.75)],
      sampleRate: 8000,
    })
    const mono = await parseSound(bytes, 16_000, 'inputs.x')
    expect(mono).toEqual({ data: Float32Array.of(0, 0.25), sampleRate: 8000 })
  })

  test('that is cut or compressed', async () => {
    const bytes = wav([0, 0, 0, 0], PCM)
    for (let length = 0; length < bytes.length; length++)
      expect(() => readWav(bytes.subarray(0, length))).not.toThrow()
    expect(readWav(bytes.subarray(0, bytes.length - 3))?.data[0]).toHaveLength(2)
    const compressed = wav([0], { ...PCM, code: 85 })
    expect(readWav(compressed)).toBeNull()
    await expect(parseSound(compressed, 16_000, 'inputs.x')).rejects.toThrow(
      'inputs.x: is not a WAV file',
    )
  })
})

test('a file in an object has the rate of the file', async () => {
  const data = wav([0, 16_384], PCM)
  const sound = await parseSound({ data }, 16_000, 'inputs.x')
  expect(sound).toEqual({ data: Float32Array.of(0, 0.5), sampleRate: 8000 })
})

test('what contains itself is no sound', async () => {
  const object: Record<string, unknown> = {}
  object['data'] = object
  const list: unknown[] = [0]
  list.push(list)
  await expect(parseSound(object, 16_000, 'inputs.x')).rejects.toThrow('inputs.x.data: must be')
  await expect(parseSound(list, 16_000, 'inputs.x')).rejects.toThrow('inputs.x: must be')
})

test.each<[unknown, string]>([
  ['text', 'inputs.x: must be sound (AudioBuffer,'],
  [{ data: [0], sampleRate: 'fast' }, 'inputs.x.sampleRate: must be a number, not a string.'],
  [{ data: [0], sampleRate: NaN }, 'inputs.x.sampleRate: must be from 1000 to 768000, not NaN.'],
  [{ data: 'x', sampleRate: 8000 }, 'inputs.x.data: must be sound'],
])('%j is no sound', async (value, message) => {
  await expect(parseSound(value, 16_000, 'inputs.x')).rejects.toThrow(message)
})

describe('another rate', () => {
  test.each([48_000, 44_100, 8000])('a tone of %i Hz stays the tone', (sampleRate) => {
    const { data } = resampleSound(
      tone(sampleRate, sampleRate / 10),
      sampleRate,
      16_000,
      null,
      true,
    )
    expect(data).toHaveLength(1600)
    const expected = tone(16_000, 1600)
    // The ends are those of a tone that begins and stops.
    const errors = [...data].map((sample, at) => Math.abs(sample - (expected[at] ?? NaN)))
    expect(Math.max(...errors.slice(60, -60))).toBeLessThan(0.002)
  })

  test('a tone above half the rate is silent', () => {
    const high = Float32Array.from({ length: 4800 }, (_, at) =>
      Math.sin((2 * Math.PI * 11_000 * at) / 48_000),
    )
    const { data } = resampleSound(high, 48_000, 16_000, null, true)
    expect(Math.max(...data.slice(60, -60).map(Math.abs))).toBeLessThan(0.005)
  })

  test('pieces of a stream are the same as the whole', () => {
    const whole = tone(44_100, 5000)
    const expected = resampleSound(whole, 44_100, 16_000, null, true).data
    const pieces: number[] = []
    let tail = null
    for (let at = 0; at < 5000; at += 441) {
      const piece = whole.slice(at, at + 441)
      const result = resampleSound(piece, 44_100, 16_000, tail, at + 441 >= 5000)
      tail = result.tail
      pieces.push(...result.data)
    }
    expect(pieces).toHaveLength(expected.length)
    for (const [at, sample] of pieces.entries()) expect(sample).toBeCloseTo(expected[at] ?? NaN, 5)
  })
})

describe('windows', () => {
  const layout = { rate: 16_000, context: 2 }
  const sound = (...data: number[]) => ({ data: Float32Array.from(data), sampleRate: 16_000 })

  test('of a whole sound: each has the context before it, and the last is filled', () => {
    const { windows } = cutWindows(sound(1, 2, 3, 4, 5), layout, 3, null, true, 'inputs.x')
    expect(windows.map((each) => [...each])).toEqual([
      [0, 0, 1, 2, 3],
      [2, 3, 4, 5, 0],
    ])
  })

  test('of a stream: what fills no window waits', () => {
    const first = cutWindows(sound(1, 2), layout, 3, null, false, 'inputs.x')
    expect(first.windows).toEqual([])
    const second = cutWindows(sound(3, 4), layout, 3, first.state, false, 'inputs.x')
    expect(second.windows.map((each) => [...each])).toEqual([[0, 0, 1, 2, 3]])
    const third = cutWindows(sound(5, 6), layout, 3, second.state, false, 'inputs.x')
    expect(third.windows.map((each) => [...each])).toEqual([[2, 3, 4, 5, 6]])
  })

  test('without a length: all of it', () => {
    const { windows } = cutWindows(sound(1, 2, 3), { rate: 16_000 }, null, null, true, 'inputs.x')
    expect(windows).toEqual([Float32Array.of(1, 2, 3)])
  })

  test('too many are refused', () => {
    const data = new Float32Array(2 ** 17 + 1)
    const long = { data, sampleRate: 16_000 }
    expect(() => cutWindows(long, { rate: 16_000 }, 1, null, true, 'inputs.x')).toThrow(
      /Send it in parts/,
    )
  })
})
