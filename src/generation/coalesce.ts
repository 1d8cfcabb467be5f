/** Merges events of a fast model, so that transport does not cost more than generation. */
import type { GenerationEvent } from '../types/index.ts'

/**
 * Minimum time in milliseconds between two text events: half a screen frame. Each event is sent to
 * another thread, which slows down the computing thread on a small machine. Models below 125
 * tokens/s are not affected.
 */
const EVENT_INTERVAL_MS = 8

/** Interval in milliseconds at high speed: one frame, since a screen shows no more updates. */
const FAST_EVENT_INTERVAL_MS = 16

/** Number of tokens within one interval from which the longer interval applies. */
const FAST_TOKENS_PER_INTERVAL = 3

type TextEvent = Extract<GenerationEvent, { text: string }>

export type Coalescer = ReturnType<typeof createCoalescer>

/** Creates a coalescer of text, reasoning or argument events of one kind within the interval. */
export function createCoalescer(now: () => number = () => performance.now()) {
  let heldEvent: TextEvent | null = null
  let count = 0
  let interval = EVENT_INTERVAL_MS
  let last = -Infinity

  /** Returns the event that was held back, if there is one. */
  const flush = (): GenerationEvent[] => {
    const events = heldEvent ? [heldEvent] : []
    heldEvent = null
    return events
  }

  return {
    flush,
    /** Returns the events to send after this one has come. Holds it back if it may be merged. */
    push(event: GenerationEvent): GenerationEvent[] {
      const merged: TextEvent | null = heldEvent && mergeEvents(heldEvent, event)
      const events = merged ? [] : flush()
      heldEvent = null
      if (!('text' in event)) return [...events, event]
      count = merged ? count + 1 : 1
      const time = now()
      if (time - last < interval) {
        heldEvent = merged ?? event
        return events
      }
      last = time
      interval = count < FAST_TOKENS_PER_INTERVAL ? EVENT_INTERVAL_MS : FAST_EVENT_INTERVAL_MS
      return [...events, merged ?? event]
    },
  }
}

/** Merges two events of the same kind, and of the same call for arguments; otherwise `null`. */
export function mergeEvents(first: TextEvent, second: GenerationEvent): TextEvent | null {
  if (!('text' in second) || first.type !== second.type) return null
  const tokens = second.tokens && [...(first.tokens ?? []), ...second.tokens]
  const merged = { ...first, text: first.text + second.text, ...(tokens && { tokens }) }
  if (merged.type === 'tool_arguments' && second.type === 'tool_arguments') {
    return merged.index === second.index ? merged : null
  }
  if (merged.type !== 'text' || second.type !== 'text') return merged
  const logprobs = (merged.logprobs || second.logprobs) && [
    ...(merged.logprobs ?? []),
    ...(second.logprobs ?? []),
  ]
  return logprobs ? { ...merged, logprobs } : merged
}
