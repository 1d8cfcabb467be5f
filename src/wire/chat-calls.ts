/** How a chat completion tells of calls. */
import type { GenerationEvent, ToolCall } from '../types/index.ts'

type Told<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

export interface CallForm {
  /** What ended an answer that calls. */
  finish: string
  /** The fields of a message. */
  whole(calls: readonly ToolCall[]): object
  /** The deltas: a call begins, its arguments go on. */
  opening(event: Told<'tool_call'>): object
  more(event: Told<'tool_arguments'>): object
}

/** Of tools: any number of calls, each with an id. */
export const TOOL_CALLS: CallForm = {
  finish: 'tool_calls',
  whole: (calls) => ({ tool_calls: calls.map(toolCall) }),
  opening: (event) => ({
    tool_calls: [{ index: event.index, ...toolCall({ ...event, arguments: '' }) }],
  }),
  more: ({ index, text }) => ({ tool_calls: [{ index, function: { arguments: text } }] }),
}

function toolCall({ id, name, arguments: text }: ToolCall) {
  return { id, type: 'function', function: { name, arguments: text } }
}

/** Of functions, as it was before there were tools: one call, which nothing names. */
export const FUNCTION_CALL: CallForm = {
  finish: 'function_call',
  whole: ([call]) => ({ function_call: { name: call?.name, arguments: call?.arguments } }),
  opening: ({ name }) => ({ function_call: { name, arguments: '' } }),
  more: ({ text }) => ({ function_call: { arguments: text } }),
}
