/** Reads sound that only pages can read: buffers of Web Audio, and files in any format. */
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf } from '../values/instances.ts'
import { mixChannels, type Sound } from './audio.ts'

/** Maximum size in bytes of a file that is decoded. Its samples take about ten times as much. */
const MAX_FILE_BYTES = 2 ** 24

/** Samples per second to which the browser decodes files that are not WAV. */
const DECODED_RATE = 48_000

/** Minimum and maximum of samples per second to which every browser can decode. */
const DECODABLE_RATES = [8000, 96_000] as const

/** Mono samples with the file that they were decoded from. */
interface DecodedSound extends Sound {
  file?: Blob
}

/** Returns `true` for an `AudioBuffer`, and for a file of sound or video by its type. */
export const isPageSound = (value: unknown): value is AudioBuffer | Blob =>
  isInstanceOf(value, ['AudioBuffer']) ||
  (value instanceof Blob &&
    /^(audio|video)\//.test(value.type) &&
    'OfflineAudioContext' in globalThis)

/** Resolves with the mono samples. Rejects with `invalid_request` for a file without sound. */
export async function toPageSound(value: AudioBuffer | Blob, path: string): Promise<DecodedSound> {
  if (!(value instanceof Blob)) return toSound(value)
  if (value.size > MAX_FILE_BYTES)
    throwInvalidInput(path, `is larger than ${MAX_FILE_BYTES} bytes. Send it in parts.`)
  const bytes = await value.arrayBuffer()
  const context = new OfflineAudioContext(1, 1, findRate(bytes))
  try {
    return { ...toSound(await context.decodeAudioData(bytes)), file: value }
  } catch (cause) {
    return throwInvalidInput(path, `this browser cannot decode its sound (${value.type}).`, cause)
  }
}

/** Returns the rate of a WAV file, so that its samples stay as they are, or the one of other files. */
function findRate(file: ArrayBuffer): number {
  const [min, max] = DECODABLE_RATES
  const isWav = /^RIFF.{4}WAVEfmt $/s.test(new TextDecoder('latin1').decode(file.slice(0, 16)))
  const rate = isWav && file.byteLength >= 28 ? new DataView(file).getUint32(24, true) : 0
  return rate >= min && rate <= max ? rate : DECODED_RATE
}

function toSound(buffer: AudioBuffer): Sound {
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, channel) =>
    buffer.getChannelData(channel),
  )
  return { data: mixChannels(channels), sampleRate: buffer.sampleRate }
}
