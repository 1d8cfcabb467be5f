/** Collects the events of a generation for a response with one JSON body. */
import type { GenerationEvent, TokenLogprob, ToolCall } from '../types/index.ts'
import type { EventEncoder } from './response-body.ts'
import { JSON_TYPE } from './http-response.ts'

/** Part of a completion, in the order of generation. */
export type CompletionPart =
  | { type: 'reasoning'; text: string }
  | { type: 'text'; text: string; logprobs: TokenLogprob[] }
  | ({ type: 'call' } & ToolCall)

export type FinishEvent = Extract<GenerationEvent, { type: 'finish' }>

/** Creates an encoder for one JSON body. Spaces are sent ahead of it as heartbeats. */
export function jsonEncoder(
  toJson: (parts: readonly CompletionPart[], finish: FinishEvent) => object | Promise<object>,
): EventEncoder {
  const parts: CompletionPart[] = []
  let finish: FinishEvent | null = null
  return {
    type: JSON_TYPE,
    encode(event) {
      if (event.type === 'progress' || event.type === 'heartbeat') return ' '
      if (event.type === 'finish') finish = event
      else addEvent(parts, event)
      return ''
    },
    settle: async () => (finish ? JSON.stringify(await toJson(parts, finish)) : ''),
  }
}

function addEvent(parts: CompletionPart[], event: GenerationEvent): void {
  const last = parts.at(-1)
  switch (event.type) {
    case 'reasoning':
      if (last?.type === 'reasoning') last.text += event.text
      else parts.push({ type: 'reasoning', text: event.text })
      break
    case 'text': {
      const logprobs = event.logprobs ?? []
      if (last?.type !== 'text') {
        parts.push({ type: 'text', text: event.text, logprobs: [...logprobs] })
        break
      }
      last.text += event.text
      last.logprobs.push(...logprobs)
      break
    }
    case 'tool_call':
      parts.push({ type: 'call', id: event.id, name: event.name, arguments: '' })
      break
    case 'tool_arguments':
      if (last?.type === 'call') last.arguments += event.text
  }
}

/** Returns the parts of one type. */
export function partsOfType<Type extends CompletionPart['type']>(
  type: Type,
  parts: readonly CompletionPart[],
): Array<Extract<CompletionPart, { type: Type }>> {
  return parts.filter((part): part is Extract<CompletionPart, { type: Type }> => part.type === type)
}

/** Returns the joined text of the parts of one type. */
export function joinText(type: 'reasoning' | 'text', parts: readonly CompletionPart[]): string {
  return partsOfType(type, parts)
    .map(({ text }) => text)
    .join('')
}
