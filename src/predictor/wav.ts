/** Reads WAV files, which workers can read without the decoders of a page. */

/** Channels of a file, with samples from -1 to 1. */
export interface Channels {
  data: Float32Array[]
  /** Samples per second. */
  sampleRate: number
}

/** Numbers of the sample formats. The last one names the format in its extension. */
const FORMATS = { integer: 1, float: 3, extensible: 0xfffe }

/** Maximum number of channels. */
const MAX_CHANNELS = 32

/** Returns the channels of a file, or `null` if it is not an uncompressed WAV file. */
export function readWav(bytes: Uint8Array): Channels | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (readMark(view, 0) !== 'RIFF' || readMark(view, 8) !== 'WAVE') return null
  let header: Header | null = null
  for (let at = 12; at + 8 <= view.byteLength;) {
    const mark = readMark(view, at)
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

const readMark = (view: DataView, at: number): string =>
  at + 4 <= view.byteLength
    ? String.fromCharCode(...[0, 1, 2, 3].map((offset) => view.getUint8(at + offset)))
    : ''

interface Header {
  channels: number
  sampleRate: number
  /** Bytes of one sample of one channel. */
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
  const read =
    format === FORMATS.float
      ? FLOATS.get(bits)
      : format === FORMATS.integer
        ? INTEGERS.get(bits)
        : undefined
  const isUsable = channels >= 1 && channels <= MAX_CHANNELS
  return read && isUsable ? { channels, sampleRate, sampleBytes: bits / 8, read } : null
}

type Reader = Header['read']

const INTEGERS = new Map<number, Reader>([
  [8, (view, at) => (view.getUint8(at) - 128) / 128],
  [16, (view, at) => view.getInt16(at, true) / 2 ** 15],
  [24, (view, at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 2 ** 16) / 2 ** 23],
  [32, (view, at) => view.getInt32(at, true) / 2 ** 31],
])

const FLOATS = new Map<number, Reader>([
  [32, (view, at) => view.getFloat32(at, true)],
  [64, (view, at) => view.getFloat64(at, true)],
])

function readSamples(view: DataView, from: number, bytes: number, header: Header): Channels {
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
