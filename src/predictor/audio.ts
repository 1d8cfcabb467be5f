/** Reads sound as mono samples. */
import { describeValue, SAMPLE_RATES } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf, isObject } from '../values/objects.ts'

/** Mono samples from -1 to 1. */
export interface Sound {
  data: Float32Array
  sampleRate: number
}

/** Maximum number of samples of one call: 23 minutes at 48 kHz. */
const MAX_SAMPLES = 2 ** 26
/** Maximum number of lists around the samples, such as those of a batch with channels. */
const MAX_NESTED_LISTS = 3

/** Resolves with sound, of samples at `rate`, `AudioData` or WAV. Rejects for anything else. */
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
  const bytes = value instanceof Blob ? await value.arrayBuffer() : value
  if (bytes instanceof ArrayBuffer || bytes instanceof Uint8Array) {
    const channels = readWav(bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes)
    if (channels) return { data: mixChannels(channels.data), sampleRate: channels.sampleRate }
    const todo = 'Decode it with decodeAudioData, or send a Blob whose type is that of the file.'
    throwInvalidInput(path, `is not a WAV file that can be read. ${todo}`)
  }
  const samples: unknown[] | null = Array.isArray(value) ? value.flat(MAX_NESTED_LISTS) : null
  if (samples?.every((sample): sample is number => typeof sample === 'number'))
    return { data: Float32Array.from(samples), sampleRate: rate }
  const wanted = 'sound (AudioBuffer, AudioData, a file, Float32Array or { data, sampleRate })'
  return throwInvalidInput(path, `must be ${wanted}, not ${describeValue(value)}.`)
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

/** Numbers of the sample formats. The last one names the format in its extension. */
const FORMATS = { integer: 1, float: 3, extensible: 0xfffe }
const MAX_CHANNELS = 32
const latin1 = new TextDecoder('latin1')

/** Returns the channels of an uncompressed WAV file, also in workers; `null` for another file. */
export function readWav(bytes: Uint8Array): { data: Float32Array[]; sampleRate: number } | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const readMark = (at: number) => latin1.decode(bytes.subarray(at, at + 4))
  if (readMark(0) !== 'RIFF' || readMark(8) !== 'WAVE') return null
  let header: Header | null = null
  for (let at = 12; at + 8 <= view.byteLength;) {
    const mark = readMark(at)
    const length = view.getUint32(at + 4, true)
    const from = at + 8
    if (mark === 'fmt ' && from + Math.max(length, 16) <= view.byteLength)
      header = readHeader(view, from, length)
    // Recorders that write to a stream leave the length open.
    if (mark === 'data')
      return header && readSamples(view, from, Math.min(length, view.byteLength - from), header)
    at = from + length + (length % 2)
  }
  return null
}

interface Header {
  channels: number
  sampleRate: number
  sampleBytes: number
  read: (view: DataView, at: number) => number
}

function readHeader(view: DataView, at: number, length: number): Header | null {
  const named = view.getUint16(at, true)
  const format =
    named === FORMATS.extensible && length >= 26 ? view.getUint16(at + 24, true) : named
  const channels = view.getUint16(at + 2, true)
  const sampleRate = view.getUint32(at + 4, true)
  const bits = view.getUint16(at + 14, true)
  const read = SAMPLE_READERS[`${format} ${bits}`]
  const isUsable = channels >= 1 && channels <= MAX_CHANNELS
  return read && isUsable ? { channels, sampleRate, sampleBytes: bits / 8, read } : null
}

const { integer, float } = FORMATS
/** Readers by the format and the bits of a sample. */
const SAMPLE_READERS: Readonly<Partial<Record<string, Header['read']>>> = {
  [`${integer} 8`]: (view, at) => (view.getUint8(at) - 128) / 128,
  [`${integer} 16`]: (view, at) => view.getInt16(at, true) / 2 ** 15,
  [`${integer} 24`]: (view, at) =>
    (view.getUint16(at, true) + view.getInt8(at + 2) * 2 ** 16) / 2 ** 23,
  [`${integer} 32`]: (view, at) => view.getInt32(at, true) / 2 ** 31,
  [`${float} 32`]: (view, at) => view.getFloat32(at, true),
  [`${float} 64`]: (view, at) => view.getFloat64(at, true),
}

function readSamples(view: DataView, from: number, bytes: number, header: Header) {
  const { channels, sampleRate, sampleBytes, read } = header
  const frames = Math.floor(bytes / (channels * sampleBytes))
  const data = Array.from({ length: channels }, (_, channel) => {
    const samples = new Float32Array(frames)
    for (let frame = 0; frame < frames; frame++)
      samples[frame] = read(view, from + (frame * channels + channel) * sampleBytes)
    return samples
  })
  return { data, sampleRate }
}
