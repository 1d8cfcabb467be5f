/** Reads the time line of an answer from its body and the times at which its pieces arrived. */
import type { Answer } from '../wire/answer.ts'
import { eventReader } from '../wire/sse.ts'

export interface TimelineEntry {
  /** Milliseconds since the request. */
  at: number
  /** Milliseconds since the entry before; since the request for the first one. */
  gap: number
  /** `token` has text of the answer; a comment is a sign of life, and so is a `ping`. */
  kind: 'token' | 'heartbeat' | 'event'
  /** Text of a token, or what the event is. */
  text: string
}

/** Returns a function that reads the entries which are new since its last call. */
export function timelineReader(answer: Answer): () => TimelineEntry[] {
  let offset = 0
  let arrival = 0
  let last = 0
  return () => {
    const found: TimelineEntry[] = []
    const { raw, arrivals = [] } = answer
    for (let end = raw.indexOf('\n\n', offset); end >= 0; end = raw.indexOf('\n\n', offset)) {
      const block = raw.slice(offset, end + 2)
      offset = end + 2
      while ((arrivals[arrival]?.length ?? Infinity) < offset) arrival += 1
      const at = arrivals[arrival]?.at ?? last
      found.push({ at, gap: at - last, ...describe(block, answer) })
      last = at
    }
    return found
  }
}

function describe(block: string, { style }: Answer): Pick<TimelineEntry, 'kind' | 'text'> {
  const [event] = eventReader()(block)
  if (!event) return { kind: 'heartbeat', text: block.replace(/^:\s*/, '').trim() || 'comment' }
  if (event.event === 'ping') return { kind: 'heartbeat', text: 'ping' }
  const piece = read(style, event)
  if (piece.text) return { kind: 'token', text: piece.text }
  const facts = [event.event === 'message' ? '' : event.event, piece.finish, piece.error]
  return { kind: 'event', text: facts.filter(Boolean).join(' · ') || event.data.slice(0, 60) }
}

type Read = Answer['style']['read']

/** Reads an event. One that is no JSON, as from another server, has no content. */
function read(style: Answer['style'], event: Parameters<Read>[0]): ReturnType<Read> {
  try {
    return style.read(event)
  } catch {
    return {}
  }
}

/** Figures about the entries of an answer. */
export interface TimelineSummary {
  events: number
  tokens: number
  heartbeats: number
  /** Longest time in milliseconds between two entries. */
  longestGap: number
}

export function addToSummary(
  summary: TimelineSummary,
  entries: readonly TimelineEntry[],
): TimelineSummary {
  const count = (kind: TimelineEntry['kind']): number =>
    entries.filter((entry) => entry.kind === kind).length
  return {
    events: summary.events + entries.length,
    tokens: summary.tokens + count('token'),
    heartbeats: summary.heartbeats + count('heartbeat'),
    longestGap: entries.reduce((longest, { gap }) => Math.max(longest, gap), summary.longestGap),
  }
}
