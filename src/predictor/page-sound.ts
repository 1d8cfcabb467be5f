/** Reads sound that only pages can read: buffers of Web Audio, and files in any format. */
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf } from '../values/instances.ts'
import { mixChannels, type Sound } from './audio.ts'

/** Maximum size in bytes of a file that is decoded. Its samples take about ten times as much. */
const MAX_FILE_BYTES = 2 ** 24

/** Samples per second to which the browser decodes files. */
const DECODED_RATE = 48_000

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
  const context = new OfflineAudioContext(1, 1, DECODED_RATE)
  try {
    return { ...toSound(await context.decodeAudioData(await value.arrayBuffer())), file: value }
  } catch (cause) {
    return throwInvalidInput(path, `this browser cannot decode its sound (${value.type}).`, cause)
  }
}

function toSound(buffer: AudioBuffer): Sound {
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, channel) =>
    buffer.getChannelData(channel),
  )
  return { data: mixChannels(channels), sampleRate: buffer.sampleRate }
}
