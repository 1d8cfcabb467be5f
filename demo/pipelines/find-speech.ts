/** Finds where people speak in a stream of sound, with a session that carries the model's state. */
import type { Server } from '../../src/index.ts'

/** Part of the sound in which somebody speaks, in seconds. */
export interface Segment {
  from: number
  /** `null` while somebody still speaks. */
  to: number | null
}

/** Sound that `server.session` takes: of a file, or of a stream. */
export type Sound = AudioData | { data: Float32Array<ArrayBuffer>; sampleRate: number }

/** Seconds of one window of the model. */
export const WINDOW_SECONDS = 512 / 16_000

/** Probability at which speech begins, and one at which it ends. */
const BEGIN = 0.5
const END = 0.35
/** Windows in a row without speech that end a segment, so that a breath does not. */
const MIN_PAUSE = 8

/** Yields the probabilities of speech in the windows that each piece of the sound has completed. */
export async function* listen(
  server: Server,
  sounds: AsyncIterable<Sound> | Iterable<Sound>,
): AsyncGenerator<number[]> {
  const session = await server.session('@silero/vad')
  try {
    for await (const input of sounds) {
      const { outputs } = await session.predict({ input })
      yield Array.from((outputs['speech'] as { data: Float32Array }).data)
    }
  } finally {
    session.close()
  }
}

/** Returns the segments in which the probabilities are high. */
export function findSegments(probabilities: readonly number[]): Segment[] {
  const segments: Segment[] = []
  let current: Segment | null = null
  let quiet = 0
  for (const [index, probability] of probabilities.entries()) {
    if (probability >= BEGIN) {
      if (!current) segments.push((current = { from: index * WINDOW_SECONDS, to: null }))
      quiet = 0
    } else if (current && probability < END) {
      quiet += 1
      if (quiet < MIN_PAUSE) continue
      current.to = (index + 1 - MIN_PAUSE) * WINDOW_SECONDS
      current = null
    }
  }
  return segments
}
