/** Attaches to the events of a completion the tokens from which another host can continue it. */
import type { ContentEvent, GenerationEvent } from '../types/index.ts'

/**
 * Returns a function for the events of one completion in their order, and the tokens that led to
 * them. The last content among the events gets these tokens, and those of earlier calls without
 * content.
 */
export function createTokenLog(): (
  events: readonly GenerationEvent[],
  tokenIds?: readonly number[],
) => GenerationEvent[] {
  let tokens: number[] = []
  return (events, tokenIds = []) => {
    tokens.push(...tokenIds)
    const last = events.findLastIndex(isContent)
    if (last === -1 || tokens.length === 0) return [...events]
    const logged = events.map((event, index) => (index === last ? { ...event, tokens } : event))
    tokens = []
    return logged
  }
}

export function isContent(event: GenerationEvent): event is ContentEvent {
  return ['reasoning', 'text', 'tool_call', 'tool_arguments'].includes(event.type)
}
