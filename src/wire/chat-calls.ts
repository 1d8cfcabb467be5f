/** The two forms of tool calls in a chat completion: `tool_calls` and `function_call`. */
import type { GenerationEvent, ToolCall } from '../types/index.ts'

type Told<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

/** Form in which a chat completion contains calls. */
export interface CallForm {
  /** Value of `finish_reason` when the completion ends with a call. */
  finish: string
  /** Returns the fields of a message for complete calls. */
  whole(calls: readonly ToolCall[]): object
  /** Returns the first delta of a call. */
  opening(event: Told<'tool_call'>): object
  /** Returns a delta with more of the arguments. */
  more(event: Told<'tool_arguments'>): object
}

/** Form for tools: any number of calls, each with an id. */
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

/** Deprecated form for functions: one call without an id. */
export const FUNCTION_CALL: CallForm = {
  finish: 'function_call',
  whole: ([call]) => ({ function_call: { name: call?.name, arguments: call?.arguments } }),
  opening: ({ name }) => ({ function_call: { name, arguments: '' } }),
  more: ({ text }) => ({ function_call: { arguments: text } }),
}
