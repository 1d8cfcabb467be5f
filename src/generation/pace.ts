/** Merges events of a fast model, so that transport does not cost more than generation. */
import type { GenerationEvent } from '../types/index.ts'

/**
 * Minimum time in milliseconds between two text events: half a screen frame. Each event crosses
 * three threads, which slows down the computing thread on a small machine. Models below 125
 * tokens/s are not affected.
 */
const INTERVAL = 8

/** Interval in milliseconds at high speed: one frame, since a screen shows no more updates. */
const LONG_INTERVAL = 16

/** Number of tokens within one interval from which the longer interval applies. */
const MANY = 3

type Told = Extract<GenerationEvent, { text: string }>

/**
 * Yields the same events, but merges consecutive text, reasoning or argument events of the same
 * kind that arrive within the interval.
 */
export async function* pace(
  events: AsyncIterable<GenerationEvent>,
  now: () => number = () => performance.now(),
): AsyncGenerator<GenerationEvent> {
  let held: Told | null = null
  let count = 0
  let interval = INTERVAL
  let last = -Infinity
  try {
    for await (const event of events) {
      const joined: Told | null = held && join(held, event)
      if (held && !joined) yield held
      held = null
      if (!('text' in event)) {
        yield event
        continue
      }
      count = joined ? count + 1 : 1
      const time = now()
      if (time - last < interval) held = joined ?? event
      else {
        last = time
        interval = count < MANY ? INTERVAL : LONG_INTERVAL
        yield joined ?? event
      }
    }
  } catch (error) {
    if (held) yield held
    throw error
  }
  if (held) yield held
}

/** Merges two events of the same kind, and of the same call for arguments; otherwise `null`. */
function join(first: Told, second: GenerationEvent): Told | null {
  if (first.type === 'reasoning' && second.type === 'reasoning') {
    return { ...first, text: first.text + second.text }
  }
  if (first.type === 'tool_arguments' && second.type === 'tool_arguments') {
    return first.index === second.index ? { ...first, text: first.text + second.text } : null
  }
  if (first.type !== 'text' || second.type !== 'text') return null
  const logprobs = first.logprobs && second.logprobs && [...first.logprobs, ...second.logprobs]
  return { type: 'text', text: first.text + second.text, ...(logprobs && { logprobs }) }
}
