/** Collects the events of a generation for a response with one JSON body. */
import type { GenerationEvent, TokenLogprob, ToolCall } from '../types/index.ts'
import type { EventEncoder } from './response-body.ts'
import { JSON_TYPE } from './http-response.ts'

/** Part of a completion, in the order of generation. */
export type CompletionPart =
  | { type: 'reasoning'; text: string }
  | { type: 'text'; text: string; logprobs: TokenLogprob[] }
  /** A call. That of a custom tool has a text in place of arguments. */
  | ({ type: 'call'; isCustom?: boolean | undefined } & ToolCall)

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
  const part = findPart(event, last)
  if (part && part !== last) parts.push(part)
  if (part && 'text' in event) extendPart(part, event.text, logprobsOf(event))
}

/** Returns the part that an event belongs to: `last`, or a new empty one. */
export function findPart(
  event: GenerationEvent,
  last: CompletionPart | undefined,
): CompletionPart | undefined {
  switch (event.type) {
    case 'reasoning':
      return last?.type === 'reasoning' ? last : { type: 'reasoning', text: '' }
    case 'text':
      return last?.type === 'text' ? last : { type: 'text', text: '', logprobs: [] }
    case 'tool_call':
      return {
        type: 'call',
        id: event.id,
        name: event.name,
        arguments: '',
        isCustom: event.isCustom,
      }
    case 'tool_arguments':
      return last?.type === 'call' ? last : undefined
  }
}

export function extendPart(
  part: CompletionPart,
  text: string,
  logprobs: readonly TokenLogprob[],
): void {
  if (part.type === 'call') part.arguments += text
  else part.text += text
  if (part.type === 'text') part.logprobs.push(...logprobs)
}

export const logprobsOf = (event: GenerationEvent): readonly TokenLogprob[] =>
  (event.type === 'text' && event.logprobs) || []

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
