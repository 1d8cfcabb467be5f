import type { FinishReason, Usage } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { progressText } from './answer.ts'
import { wireError } from './errors.ts'
import { id } from './id.ts'
import { jsonEncoder } from './parts.ts'
import type { Finish, Part } from './parts.ts'
import { SSE_TYPE } from './reply.ts'
import { comment, frame } from './sse.ts'
import { toolUseId } from './tools.ts'

/** What of an answer is told. */
export interface MessageTelling {
  model: string
  reasoning: boolean
}

const STOP = {
  stop: 'end_turn',
  length: 'max_tokens',
  stop_sequence: 'stop_sequence',
  tool_calls: 'tool_use',
} as const satisfies Record<FinishReason, string>

/** Cached tokens are counted apart from the input here. */
function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens - cachedTokens,
    output_tokens: completionTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}

/** What ended an answer that calls tools is the call. */
function ending({ reason, stopSequence }: Finish) {
  return {
    stop_reason: STOP[reason],
    stop_sequence: reason === 'stop_sequence' ? stopSequence : null,
  }
}

/** A message as one JSON body; leading spaces while it is being made. */
export function messageJson({ model, reasoning }: MessageTelling): Encoder {
  const head = { id: id('msg_'), type: 'message', role: 'assistant', model }
  return jsonEncoder((parts, finish) => {
    const told = parts.filter(({ type }) => reasoning || type !== 'reasoning').map(blockOf)
    const content = told.length > 0 ? told : [{ type: 'text', text: '' }]
    return { ...head, content, ...ending(finish), usage: usageOf(finish.usage) }
  })
}

function blockOf(part: Part) {
  switch (part.type) {
    case 'reasoning':
      return { type: 'thinking', thinking: part.text, signature: signature() }
    case 'text':
      return { type: 'text', text: part.text }
    case 'call':
      return {
        type: 'tool_use',
        id: toolUseId(part.id),
        name: part.name,
        input: inputOf(part.arguments),
      }
  }
}

/** A call that a limit cut off has no input yet. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** Clients want one, and send it back with the thought. Nothing here has to trust it. */
function signature(): string {
  return id('sig_')
}

/** A frame whose name is its type, as this style wants it. */
function typed(type: string, fields: object = {}): string {
  return frame({ type, ...fields }, type)
}

/** A message as a stream of events. */
export function messageStream({ model, reasoning }: MessageTelling): Encoder {
  const head = { id: id('msg_'), type: 'message', role: 'assistant', model, content: [] }
  const ping = typed('ping')
  const blocks = createBlocks()
  return {
    type: SSE_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
          return comment(progressText(event.progress)) + ping
        case 'heartbeat':
          return ping
        case 'start': {
          // No output yet: clients add what the end reports to what the start does.
          const usage = usageOf({ ...event, completionTokens: 0, reasoningTokens: 0 })
          return typed('message_start', {
            message: { ...head, stop_reason: null, stop_sequence: null, usage },
          })
        }
        case 'reasoning':
          return reasoning ? blocks.add(THINKING, event.text) : ''
        case 'text':
          return blocks.add(TEXT, event.text)
        case 'tool_call':
          return blocks.begin({
            type: 'tool_use',
            id: toolUseId(event.id),
            name: event.name,
            input: {},
          })
        case 'tool_arguments':
          return blocks.add(null, event.text)
        case 'finish':
          return (
            blocks.end() +
            typed('message_delta', { delta: ending(event), usage: usageOf(event.usage) }) +
            typed('message_stop')
          )
      }
    },
    fail: (error) => {
      const { type, message } = wireError(error)
      return typed('error', { error: { type, message } })
    },
  }
}

type Block = { type: 'text' | 'thinking' | 'tool_use' } & Record<string, unknown>

const TEXT: Block = { type: 'text', text: '' }
const THINKING: Block = { type: 'thinking', thinking: '', signature: '' }

/** Blocks one after the other, each closed before the next begins. */
function createBlocks() {
  let open: Block['type'] | null = null
  let index = -1
  const delta = (fields: object): string => typed('content_block_delta', { index, delta: fields })

  const close = (): string => {
    if (open === null) return ''
    const signed =
      open === 'thinking' ? delta({ type: 'signature_delta', signature: signature() }) : ''
    open = null
    return signed + typed('content_block_stop', { index })
  }
  const begin = (block: Block): string => {
    const before = close()
    open = block.type
    index += 1
    return before + typed('content_block_start', { index, content_block: block })
  }
  return {
    begin,
    /** More of the block that is open, or of a new one when that is of another type. */
    add(block: Block | null, text: string): string {
      if (text === '') return ''
      const opening = block && block.type !== open ? begin(block) : ''
      return opening + delta(deltaOf(open, text))
    },
    /** An answer of nothing has a text block too. */
    end: (): string => (index < 0 ? begin(TEXT) : '') + close(),
  }
}

function deltaOf(type: Block['type'] | null, text: string): object {
  switch (type) {
    case 'thinking':
      return { type: 'thinking_delta', thinking: text }
    case 'tool_use':
      return { type: 'input_json_delta', partial_json: text }
    default:
      return { type: 'text_delta', text }
  }
}
