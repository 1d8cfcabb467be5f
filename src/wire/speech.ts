/** Schema of `POST /v1/audio/speech`, its conversion to a request, and the response. */
import * as v from 'valibot'
import type { SpeechEvent, SpeechRequest } from '../types/index.ts'
import { toBase64 } from '../values/bytes.ts'
import { wireError } from './errors.ts'
import * as f from './fields.ts'
import { comment, frame, SSE_TYPE } from './http.ts'
import type { EventEncoder } from './response-body.ts'

/** Largest length of a text, as OpenAI has it. */
const MAX_CHARACTERS = 4_096

const FORMATS = ['wav', 'pcm'] as const
type Format = (typeof FORMATS)[number]

/** Schema of the body. */
export const speechBodySchema = f.object({
  model: f.tagString,
  input: v.pipe(
    f.nonEmptyString,
    v.check(
      ({ length }) => length <= MAX_CHARACTERS,
      `a string of at most ${MAX_CHARACTERS} characters`,
    ),
  ),
  voice: f.optional(
    f.stringOr(
      f.nonEmptyString,
      v.object({ id: f.nonEmptyString }, 'a string, or an object with an id'),
    ),
  ),
  response_format: f.optional(f.oneOf(FORMATS)),
  speed: f.optional(f.numberBetween(0.25, 4)),
  stream_format: f.optional(f.oneOf(['audio', 'sse'])),
  instructions: f.withoutEffect(f.string, (text) => text === ''),
})

type SpeechBody = v.InferOutput<typeof speechBodySchema>

/** Converts the body to a request. */
export const parseSpeech = ({ model, input, voice, speed }: SpeechBody): SpeechRequest => ({
  model,
  input,
  voice: (typeof voice === 'string' ? voice : voice?.id) ?? 'default',
  speed: speed ?? 1,
})

/** Encodes sound as it comes: as a file of a length that is not known yet, or as events. */
export function speechEncoder(
  { response_format: format, stream_format: stream }: SpeechBody,
  rate: number,
): EventEncoder<SpeechEvent> {
  const encodeSound = createSoundEncoder(format ?? 'wav', rate)
  if (stream === 'sse') return eventEncoder(encodeSound)
  return {
    type: `audio/${format ?? 'wav'}`,
    encode: encodeSound,
    // A sound that ends early would be taken for the whole one.
    fail(error) {
      throw error
    },
  }
}

type EncodeSound = (event: SpeechEvent) => Uint8Array<ArrayBuffer>

/** Returns the function that gives the bytes of an event, those of the header with the first one. */
function createSoundEncoder(format: Format, rate: number): EncodeSound {
  let header: Uint8Array | null = format === 'wav' ? wavHeader(rate) : null
  return (event) => {
    const samples = event.type === 'audio' ? event.samples : new Int16Array()
    // All browsers are little-endian, as these formats are.
    const sound = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)
    const before = header ?? new Uint8Array()
    header = null
    const bytes = new Uint8Array(before.length + sound.length)
    bytes.set(before)
    bytes.set(sound, before.length)
    return bytes
  }
}

const eventEncoder = (encodeSound: EncodeSound): EventEncoder<SpeechEvent> => {
  let tokens = 0
  return {
    type: SSE_TYPE,
    encode(event) {
      if (event.type === 'heartbeat') return comment('heartbeat')
      const bytes = encodeSound(event)
      if (event.type === 'audio') tokens += event.tokens
      const audio = bytes.length > 0 && { type: 'speech.audio.delta', audio: toBase64(bytes) }
      const usage = { input_tokens: tokens, output_tokens: 0, total_tokens: tokens }
      const done = event.type === 'finish' && { type: 'speech.audio.done', usage }
      return [audio, done].flatMap((one) => (one ? [frame(one)] : [])).join('')
    },
    fail: (error) => frame({ type: 'error', error: wireError(error) }),
  }
}

const CHANNELS = 1
const SAMPLE_BYTES = 2
/** Length of a file that is not known yet. Players then read to the end. */
const UNKNOWN_LENGTH = 0xff_ff_ff_ff

/** Returns the header of a WAV file of samples of 16 bits: https://www.rfc-editor.org/rfc/rfc2361 */
function wavHeader(rate: number): Uint8Array {
  const bytes = new Uint8Array(44)
  const view = new DataView(bytes.buffer)
  const write = (at: number, text: string): void => bytes.set(new TextEncoder().encode(text), at)
  write(0, 'RIFF')
  view.setUint32(4, UNKNOWN_LENGTH, true)
  write(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, CHANNELS, true)
  view.setUint32(24, rate, true)
  view.setUint32(28, rate * CHANNELS * SAMPLE_BYTES, true)
  view.setUint16(32, CHANNELS * SAMPLE_BYTES, true)
  view.setUint16(34, 8 * SAMPLE_BYTES, true)
  write(36, 'data')
  view.setUint32(40, UNKNOWN_LENGTH, true)
  return bytes
}
