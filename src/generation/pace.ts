/** Keeps a fast model from costing more on the way than in the making. */
import type { GenerationEvent } from '../types/index.ts'

/**
 * Milliseconds between two texts, half a frame of a screen. Each text crosses three threads, which on a
 * small machine takes time from the one that computes. Models below 125 tokens/s are not touched.
 */
const INTERVAL = 8

/** The same events, with texts that follow each other sooner than that put together. */
export async function* pace(
  events: AsyncIterable<GenerationEvent>,
  now: () => number = () => performance.now(),
): AsyncGenerator<GenerationEvent> {
  let held = ''
  let last = -Infinity
  try {
    for await (const event of events) {
      if (event.type === 'text') {
        held += event.text
        const time = now()
        if (time - last < INTERVAL) continue
        last = time
      }
      if (held !== '') yield { type: 'text', text: held }
      held = ''
      if (event.type !== 'text') yield event
    }
  } catch (error) {
    if (held !== '') yield { type: 'text', text: held }
    throw error
  }
}
