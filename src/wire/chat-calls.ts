/** The two forms of tool calls in a chat completion: `tool_calls` and `function_call`. */
import type { GenerationEvent, ToolCall } from '../types/index.ts'

/** Mark of the call of a custom tool, which has a text instead of arguments. */
type Custom = Pick<EventOf<'tool_call'>, 'isCustom'>

type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

/** Form in which a chat completion contains calls. */
export interface CallFormat {
  /** Value of `finish_reason` when the completion ends with a call. */
  finishReason: string
  /** Returns the fields of a message for complete calls. */
  toMessageFields(calls: ReadonlyArray<ToolCall & Custom>): object
  /** Returns the first delta of a call. */
  toFirstDelta(event: EventOf<'tool_call'>): object
  /** Returns a delta with more of the arguments. */
  toDelta(event: EventOf<'tool_arguments'>): object
}

/** Creates the form for tools: any number of calls, each with an id. */
export function createToolCalls(): CallFormat {
  let isCustom: boolean | undefined
  return {
    finishReason: 'tool_calls',
    toMessageFields: (calls) => ({ tool_calls: calls.map(toToolCallJson) }),
    toFirstDelta(event) {
      isCustom = event.isCustom
      return {
        tool_calls: [{ index: event.index, ...toToolCallJson({ ...event, arguments: '' }) }],
      }
    },
    toDelta: ({ index, text }) => ({
      tool_calls: [
        { index, ...(isCustom ? { custom: { input: text } } : { function: { arguments: text } }) },
      ],
    }),
  }
}

function toToolCallJson({ id, name, arguments: text, isCustom }: ToolCall & Custom) {
  return isCustom
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } }
}

/** Deprecated form for functions: one call without an id. */
export const FUNCTION_CALL: CallFormat = {
  finishReason: 'function_call',
  toMessageFields: ([call]) => ({
    function_call: { name: call?.name, arguments: call?.arguments },
  }),
  toFirstDelta: ({ name }) => ({ function_call: { name, arguments: '' } }),
  toDelta: ({ text }) => ({ function_call: { arguments: text } }),
}
