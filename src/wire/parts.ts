/** Collects the events of a generation for a response with one JSON body. */
import type { GenerationEvent, TokenLogprob, ToolCall } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { JSON_TYPE } from './reply.ts'

/** Part of a completion, in the order of generation. */
export type Part =
  | { type: 'reasoning'; text: string }
  | { type: 'text'; text: string; logprobs: TokenLogprob[] }
  | ({ type: 'call' } & ToolCall)

export type Finish = Extract<GenerationEvent, { type: 'finish' }>

/** Creates an encoder for one JSON body. Spaces are sent ahead of it as heartbeats. */
export function jsonEncoder(
  write: (parts: readonly Part[], finish: Finish) => object | Promise<object>,
): Encoder {
  const parts: Part[] = []
  let finish: Finish | null = null
  return {
    type: JSON_TYPE,
    encode(event) {
      if (event.type === 'progress' || event.type === 'heartbeat') return ' '
      if (event.type === 'finish') finish = event
      else gather(parts, event)
      return ''
    },
    settle: async () => (finish ? JSON.stringify(await write(parts, finish)) : ''),
  }
}

function gather(parts: Part[], event: GenerationEvent): void {
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
export function only<Type extends Part['type']>(
  type: Type,
  parts: readonly Part[],
): Array<Extract<Part, { type: Type }>> {
  return parts.filter((part): part is Extract<Part, { type: Type }> => part.type === type)
}

/** Returns the joined text of the parts of one type. */
export function textOf(type: 'reasoning' | 'text', parts: readonly Part[]): string {
  return only(type, parts)
    .map(({ text }) => text)
    .join('')
}
