/** Sounds of a file and of the microphone, in pieces. */
import type { Sound } from './find-speech.ts'

/** Rate to which the browser converts the sound of a file. */
const SAMPLE_RATE_HZ = 16_000

/** Resolves with the sound of a file in pieces of a second. Rejects if it cannot be decoded. */
export async function soundOf(file: Blob): Promise<Sound[]> {
  const decoder = new OfflineAudioContext(1, 1, SAMPLE_RATE_HZ)
  const buffer = await decoder.decodeAudioData(await file.arrayBuffer())
  const mono = new Float32Array(buffer.length)
  for (let channel = 0; channel < buffer.numberOfChannels; channel += 1)
    for (const [at, sample] of buffer.getChannelData(channel).entries())
      mono[at] = (mono[at] ?? 0) + sample / buffer.numberOfChannels
  const pieces: Sound[] = []
  for (let from = 0; from < mono.length; from += SAMPLE_RATE_HZ)
    pieces.push({ data: mono.slice(from, from + SAMPLE_RATE_HZ), sampleRate: SAMPLE_RATE_HZ })
  return pieces
}

/** The part of the API that TypeScript does not know yet. */
interface TrackProcessor {
  readable: ReadableStream<AudioData>
}

declare const MediaStreamTrackProcessor:
  | (new (options: { track: MediaStreamTrack }) => TrackProcessor)
  | undefined

/** Yields what the microphone records until the signal. Rejects if the user forbids it. */
export async function* microphone(signal: AbortSignal): AsyncGenerator<AudioData> {
  if (typeof MediaStreamTrackProcessor === 'undefined')
    throw new Error('This browser cannot pass on what the microphone records. Choose a file.')
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
  const [track] = stream.getAudioTracks()
  if (!track) throw new Error('There is no microphone.')
  const reader = new MediaStreamTrackProcessor({ track }).readable.getReader()
  try {
    while (!signal.aborted) {
      const { value } = await reader.read()
      if (!value) return
      try {
        yield value
      } finally {
        value.close()
      }
    }
  } finally {
    track.stop()
  }
}
