/** Reads sound as mono samples. */
import { describeValue } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf } from '../values/instances.ts'
import { isObject } from '../values/objects.ts'
import { SAMPLE_RATES } from '../values/sample-rates.ts'
import { readWav } from './wav.ts'

/** Mono samples from -1 to 1. */
export interface Sound {
  data: Float32Array
  /** Samples per second. */
  sampleRate: number
}

/** Maximum number of samples of one call: 23 minutes at 48 kHz. */
const MAX_SAMPLES = 2 ** 26

/** Maximum number of lists around the samples, such as those of a batch with channels. */
const MAX_NESTED_LISTS = 3

/**
 * Resolves with the sound of an input: {@link Sound}, samples at the model's own rate, `AudioData`
 * or a WAV file. Rejects with `invalid_request` that names `path` for anything else.
 */
export async function parseSound(value: unknown, rate: number, path: string): Promise<Sound> {
  const sound = await readSound(value, rate, path)
  const { data, sampleRate } = sound
  const [min, max] = SAMPLE_RATES
  if (!(sampleRate >= min && sampleRate <= max))
    throwInvalidInput(`${path}.sampleRate`, `must be from ${min} to ${max}, not ${sampleRate}.`)
  if (data.length > MAX_SAMPLES)
    throwInvalidInput(path, `has more than ${MAX_SAMPLES} samples. Send it in parts.`)
  return sound
}

async function readSound(value: unknown, rate: number, path: string): Promise<Sound> {
  if (!isObject(value) || !('data' in value)) return readSource(value, rate, path)
  const { data, sampleRate } = value
  const sound = await readSource(data, rate, `${path}.data`)
  // A file says its rate by itself.
  if (sampleRate === undefined) return sound
  if (typeof sampleRate === 'number') return { ...sound, sampleRate }
  const what = `must be a number, not ${describeValue(sampleRate)}.`
  return throwInvalidInput(`${path}.sampleRate`, what)
}

async function readSource(value: unknown, rate: number, path: string): Promise<Sound> {
  if (value instanceof Float32Array || value instanceof Float64Array)
    return { data: Float32Array.from(value), sampleRate: rate }
  if (value instanceof Int16Array)
    return { data: Float32Array.from(value, (sample) => sample / 32768), sampleRate: rate }
  if (isInstanceOf(value, ['AudioData'])) return readAudioData(value as AudioData, path)
  if (value instanceof Blob) return readFile(new Uint8Array(await value.arrayBuffer()), path)
  if (value instanceof ArrayBuffer) return readFile(new Uint8Array(value), path)
  if (value instanceof Uint8Array) return readFile(value, path)
  const samples: unknown[] | null = Array.isArray(value) ? value.flat(MAX_NESTED_LISTS) : null
  if (samples?.every((sample): sample is number => typeof sample === 'number'))
    return { data: Float32Array.from(samples), sampleRate: rate }
  return throwInvalidInput(
    path,
    `must be sound (AudioBuffer, AudioData, a file, Float32Array or { data, sampleRate }), not ${describeValue(value)}.`,
  )
}

function readFile(bytes: Uint8Array, path: string): Sound {
  const channels = readWav(bytes)
  if (channels) return { data: mixChannels(channels.data), sampleRate: channels.sampleRate }
  return throwInvalidInput(
    path,
    'is not a WAV file that can be read. Decode it with decodeAudioData, or send a Blob whose type is that of the file.',
  )
}

function readAudioData(audio: AudioData, path: string): Sound {
  const { numberOfChannels, numberOfFrames, sampleRate } = audio
  if (!audio.format) return throwInvalidInput(path, 'the AudioData was closed or transferred.')
  const channels = Array.from({ length: numberOfChannels }, (_, planeIndex) => {
    const samples = new Float32Array(numberOfFrames)
    audio.copyTo(samples, { planeIndex, format: 'f32-planar' })
    return samples
  })
  return { data: mixChannels(channels), sampleRate }
}

/** Returns the mean of the channels. */
export function mixChannels(channels: readonly Float32Array[]): Float32Array {
  const [first = new Float32Array(0)] = channels
  if (channels.length < 2) return first.slice()
  return first.map(
    (_, at) => channels.reduce((sum, one) => sum + (one[at] ?? 0), 0) / channels.length,
  )
}
