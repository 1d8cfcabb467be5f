/** Keeps a fast model from costing more on the way than in the making. */
import type { GenerationEvent } from '../types/index.ts'

/**
 * Milliseconds between two texts, half a frame of a screen. Each text crosses three threads, which on a
 * small machine takes time from the one that computes. Models below 125 tokens/s are not touched.
 */
const INTERVAL = 8

/** The same where many come in that time: a frame, as no screen shows more often. */
const LONG_INTERVAL = 16

/** As many tokens at once are many. */
const MANY = 3

type Told = Extract<GenerationEvent, { text: string }>

/**
 * The same events, with texts, reasoning and arguments that follow each other sooner than that put
 * together with their like.
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

/** Two texts as one, where they are of one kind and, if arguments, of one call. */
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
