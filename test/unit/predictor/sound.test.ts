import { describe, expect, test } from 'vitest'
import { parseSound, readWav } from '../../../src/predictor/audio.ts'
import { cutWindows, resampleSound } from '../../../src/predictor/carry.ts'

/** Samples of a tone. */
const tone = (sampleRate: number, length: number, hertz = 440): Float32Array =>
  Float32Array.from({ length }, (_, at) => Math.sin((2 * Math.PI * hertz * at) / sampleRate))

type Write = (view: DataView, at: number, sample: number) => void

/** Formats by name: their code, their bits per sample, and how a sample is written. */
const FORMATS: Record<string, [code: number, bits: number, write: Write]> = {
  '8 bits': [1, 8, (view, at, one) => view.setUint8(at, one * 128 + 128)],
  '16 bits': [1, 16, (view, at, one) => view.setInt16(at, one * 2 ** 15, true)],
  '24 bits': [
    1,
    24,
    (view, at, one) => {
      view.setUint16(at, (one * 2 ** 23) & 0xffff, true)
      view.setInt8(at + 2, Math.floor((one * 2 ** 23) / 2 ** 16))
    },
  ],
  '32 bits': [1, 32, (view, at, one) => view.setInt32(at, one * 2 ** 31, true)],
  floats: [3, 32, (view, at, one) => view.setFloat32(at, one, true)],
  doubles: [3, 64, (view, at, one) => view.setFloat64(at, one, true)],
  compressed: [85, 16, () => undefined],
}

/** Makes a WAV file with a chunk of odd length before the samples. */
function wav(samples: readonly number[], format: string, channels: number): Uint8Array {
  const [code, bits, write] = FORMATS[format] ?? [0, 0, () => undefined]
  const length = (samples.length * bits) / 8
  const bytes = new Uint8Array(54 + length)
  const view = new DataView(bytes.buffer)
  const mark = (at: number, text: string) => bytes.set(Buffer.from(text), at)
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
  view.setUint32(50, length, true)
  samples.forEach((sample, index) => write(view, 54 + (index * bits) / 8, sample))
  return bytes
}

const NAMES = Object.keys(FORMATS).filter((name) => name !== 'compressed')

test.each(NAMES)('A WAV file of %s is read', async (format) => {
  const bytes = wav([0.5, -0.5, -0.25, 0.75], format, 2)
  expect(readWav(bytes)).toEqual({
    data: [Float32Array.of(0.5, -0.25), Float32Array.of(-0.5, 0.75)],
    sampleRate: 8000,
  })
  const mono = { data: Float32Array.of(0, 0.25), sampleRate: 8000 }
  expect(await parseSound(bytes, 16_000, 'inputs.x')).toEqual(mono)
  expect(await parseSound({ data: bytes }, 16_000, 'inputs.x')).toEqual(mono)
})

test('A WAV file may be cut, but not compressed', async () => {
  const bytes = wav([0, 0, 0, 0], '16 bits', 1)
  for (let length = 0; length < bytes.length; length++) {
    expect(() => readWav(bytes.subarray(0, length))).not.toThrow()
  }
  expect(readWav(bytes.subarray(0, bytes.length - 3))?.data[0]).toHaveLength(2)
  const compressed = wav([0], 'compressed', 1)
  expect(readWav(compressed)).toBeNull()
  const read = parseSound(compressed, 16_000, 'inputs.x')
  await expect(read).rejects.toThrow('inputs.x: is not a WAV file')
})

const cyclicObject: Record<string, unknown> = {}
cyclicObject['data'] = cyclicObject
const cyclicList: unknown[] = [0]
cyclicList.push(cyclicList)

test.each<[string, unknown, string]>([
  ['a text', 'text', 'inputs.x: must be sound (AudioBuffer,'],
  [
    'a rate that is a text',
    { data: [0], sampleRate: 'fast' },
    'inputs.x.sampleRate: must be a number, not a string.',
  ],
  [
    'the rate NaN',
    { data: [0], sampleRate: NaN },
    'inputs.x.sampleRate: must be from 1000 to 768000, not NaN.',
  ],
  ['data that are a text', { data: 'x', sampleRate: 8000 }, 'inputs.x.data: must be sound'],
  ['an object in itself', cyclicObject, 'inputs.x.data: must be'],
  ['a list in itself', cyclicList, 'inputs.x: must be'],
])('%s is no sound', async (_, value, message) => {
  await expect(parseSound(value, 16_000, 'inputs.x')).rejects.toThrow(message)
})

describe('Resampling', () => {
  const resample = (sound: Float32Array, rate: number, ...[tail = null, isLast = true]: Rest) =>
    resampleSound(sound, rate, 16_000, tail, isLast)
  type Rest = [tail?: Parameters<typeof resampleSound>[3], isLast?: boolean]

  test.each([48_000, 44_100, 8000])('from %i Hz keeps a tone', (sampleRate) => {
    const { data } = resample(tone(sampleRate, sampleRate / 10), sampleRate)
    expect(data).toHaveLength(1600)
    const expected = tone(16_000, 1600)
    // The ends are those of a tone that begins and stops.
    const errors = [...data].map((sample, at) => Math.abs(sample - (expected[at] ?? NaN)))
    expect(Math.max(...errors.slice(60, -60))).toBeLessThan(0.002)
  })

  test('silences a tone above half the rate', () => {
    const { data } = resample(tone(48_000, 4800, 11_000), 48_000)
    expect(Math.max(...data.slice(60, -60).map(Math.abs))).toBeLessThan(0.005)
  })

  test('of a stream gives the same as of the whole', () => {
    const whole = tone(44_100, 5000)
    const expected = resample(whole, 44_100).data
    const pieces: number[] = []
    let tail: Rest[0] = null
    for (let at = 0; at < 5000; at += 441) {
      const result = resample(whole.slice(at, at + 441), 44_100, tail, at + 441 >= 5000)
      tail = result.tail
      pieces.push(...result.data)
    }
    expect(pieces).toHaveLength(expected.length)
    for (const [at, sample] of pieces.entries()) expect(sample).toBeCloseTo(expected[at] ?? NaN, 5)
  })
})

describe('Windows', () => {
  const sound = (...data: number[]) => ({ data: Float32Array.from(data), sampleRate: 16_000 })
  type State = Parameters<typeof cutWindows>[3]
  const cut = (
    samples: number[],
    context: number,
    length: number | null,
    state: State,
    isLast: boolean,
  ) => {
    const layout = { rate: 16_000, context }
    const result = cutWindows(sound(...samples), layout, length, state, isLast, 'inputs.x')
    return { ...result, windows: result.windows.map((each) => [...each]) }
  }

  test('of a sound begin with the context, and the last is filled', () => {
    const { windows } = cut([1, 2, 3, 4, 5], 2, 3, null, true)
    expect(windows.map(String)).toEqual(['0,0,1,2,3', '2,3,4,5,0'])
  })

  test('of a stream wait until they are full', () => {
    const first = cut([1, 2], 2, 3, null, false)
    expect(first.windows).toEqual([])
    const second = cut([3, 4], 2, 3, first.state, false)
    expect(second.windows).toEqual([[0, 0, 1, 2, 3]])
    expect(cut([5, 6], 2, 3, second.state, false).windows).toEqual([[2, 3, 4, 5, 6]])
  })

  test('without a length are one, and too many are refused', () => {
    expect(cut([1, 2, 3], 0, null, null, true).windows).toEqual([[1, 2, 3]])
    const long = { data: new Float32Array(2 ** 17 + 1), sampleRate: 16_000 }
    const cutting = () => cutWindows(long, { rate: 16_000 }, 1, null, true, 'inputs.x')
    expect(cutting).toThrow(/Send it in parts/)
  })
})
