/**
 * Tools in the bodies of requests and in the streams of answers. Each endpoint has its own form:
 * `tool_calls`, `tool_use` blocks, or `function_call` items.
 */
import { eventReader } from '../wire/sse.ts'
import type { WireRequest } from '../wire/style.ts'
import type { ToolCall, ToolDefinition, ToolResult, ToolRound } from './types.ts'

/** Rule for calls of tools in one request: the model decides, calls at least one, or calls none. */
export type ToolChoice = 'auto' | 'required' | 'none'

/** The tools of one endpoint. */
interface ToolWire {
  /** Fields of the body that offer the tools. */
  offer(tools: readonly ToolDefinition[], choice: ToolChoice): Record<string, unknown>
  /** Takes the data of one event, and adds to the calls what it says of them. */
  read(event: StreamEvent, calls: Map<number, ToolCall>): void
  /** Field of the body that holds the messages. */
  field: 'messages' | 'input'
  /** Messages of a round: what the model said and called, and the results. */
  messages(round: ToolRound): object[]
}

/** The fields of all events that have to do with calls. */
interface StreamEvent {
  type?: string
  index?: number
  output_index?: number
  choices?: { delta?: { tool_calls?: CallDelta[] } }[]
  content_block?: { type: string; id: string; name: string }
  delta?: { type: string; partial_json?: string }
  item?: { type: string; call_id: string; name: string; arguments: string }
}

interface CallDelta {
  index: number
  id?: string
  function?: { name?: string; arguments?: string }
}

const completions: ToolWire = {
  offer: (tools, choice) => ({
    tools: tools.map((tool) => ({ type: 'function', function: tool })),
    tool_choice: choice,
  }),
  read({ choices }, calls) {
    for (const { index, id, function: part } of choices?.[0]?.delta?.tool_calls ?? []) {
      const call = calls.get(index) ?? { id: '', name: '', arguments: '' }
      call.id ||= id ?? ''
      call.name += part?.name ?? ''
      call.arguments += part?.arguments ?? ''
      calls.set(index, call)
    }
  },
  field: 'messages',
  messages: ({ text, results }) => [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      tool_calls: results.map(({ call }) => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
      })),
    },
    ...results.map((result) => ({
      role: 'tool',
      tool_call_id: result.call.id,
      content: toContent(result),
    })),
  ],
}

const messages: ToolWire = {
  offer: (tools, choice) => ({
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      input_schema: parameters,
    })),
    tool_choice: { type: choice === 'required' ? 'any' : choice },
  }),
  read({ type, index = 0, content_block: block, delta }, calls) {
    if (type === 'content_block_start' && block?.type === 'tool_use') {
      calls.set(index, { id: block.id, name: block.name, arguments: '' })
    }
    const call = calls.get(index)
    if (type === 'content_block_delta' && call) call.arguments += delta?.partial_json ?? ''
  },
  field: 'messages',
  messages: ({ text, results }) => [
    {
      role: 'assistant',
      content: [
        ...(text === '' ? [] : [{ type: 'text', text }]),
        ...results.map(({ call: { id, name, arguments: json } }) => ({
          type: 'tool_use',
          id,
          name,
          input: toObject(json),
        })),
      ],
    },
    {
      role: 'user',
      content: results.map(({ call, content, isError }) => ({
        type: 'tool_result',
        tool_use_id: call.id,
        content,
        is_error: isError,
      })),
    },
  ],
}

const responses: ToolWire = {
  offer: (tools, choice) => ({
    tools: tools.map((tool) => ({ type: 'function', ...tool, strict: false })),
    tool_choice: choice,
  }),
  read({ type, output_index: index = 0, item }, calls) {
    if (type !== 'response.output_item.done' || item?.type !== 'function_call') return
    calls.set(index, { id: item.call_id, name: item.name, arguments: item.arguments })
  },
  field: 'input',
  messages: ({ text, results }) => [
    ...(text === '' ? [] : [{ role: 'assistant', content: text }]),
    ...results.map(({ call }) => ({
      type: 'function_call',
      call_id: call.id,
      name: call.name,
      arguments: call.arguments,
    })),
    ...results.map((result) => ({
      type: 'function_call_output',
      call_id: result.call.id,
      output: toContent(result),
    })),
  ],
}

const WIRES: Readonly<Record<string, ToolWire>> = {
  'chat/completions': completions,
  messages,
  responses,
}

/** Returns the arguments of a call. Those of a call that was cut off are empty. */
function toObject(json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch {
    return {}
  }
}

/** Only the messages style has a field that marks an error, so the text says it elsewhere. */
const toContent = ({ content, isError }: ToolResult): string =>
  isError ? `Error: ${content}` : content

function wireOf({ path }: WireRequest): ToolWire {
  const wire = WIRES[path]
  if (wire) return wire
  throw new Error(`/v1/${path} takes no tools. Use another endpoint, or turn the tools off.`)
}

/** Returns the request with tools that the model may call. */
export function withTools(
  request: WireRequest,
  tools: readonly ToolDefinition[],
  choice: ToolChoice,
): WireRequest {
  const definitions = tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
  return {
    ...request,
    body: { ...request.body, ...wireOf(request).offer(definitions, choice) },
  }
}

/** Returns the request that continues with the results of a round. */
export function withRound(request: WireRequest, round: ToolRound): WireRequest {
  const { field } = wireOf(request)
  const before = request.body[field]
  const list: unknown[] = Array.isArray(before) ? before : [{ role: 'user', content: before }]
  return {
    ...request,
    body: { ...request.body, [field]: [...list, ...roundMessages(request.path, round)] },
  }
}

/** Returns the messages of a round in the form of an endpoint, such as `chat/completions`. */
export function roundMessages(path: string, round: ToolRound): object[] {
  return WIRES[path]?.messages(round) ?? []
}

/** Returns the calls in the stream of an answer, which is complete. */
export function readCalls(request: WireRequest, stream: string): ToolCall[] {
  const { read } = wireOf(request)
  const calls = new Map<number, ToolCall>()
  for (const { data } of eventReader()(stream)) {
    if (data !== '[DONE]') read(JSON.parse(data) as StreamEvent, calls)
  }
  return [...calls.values()]
}
