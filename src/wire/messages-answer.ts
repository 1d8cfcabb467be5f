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

/** Options that decide what a message contains. */
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

/** Returns the usage. This style counts cached tokens apart from the input tokens. */
function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens - cachedTokens,
    output_tokens: completionTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}

/** Returns the fields that say why generation stopped. */
function ending({ reason, stopSequence }: Finish) {
  return {
    stop_reason: STOP[reason],
    stop_sequence: reason === 'stop_sequence' ? stopSequence : null,
  }
}

/** Encodes a message as one JSON body. Spaces are sent ahead of it as heartbeats. */
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

/** Parses the arguments of a call. A call that was cut off by a limit has the input `{}`. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** Returns a signature for reasoning. Clients require one and send it back; nothing verifies it. */
function signature(): string {
  return id('sig_')
}

/** Encodes a frame whose event name is its type, which this style requires. */
function typed(type: string, fields: object = {}): string {
  return frame({ type, ...fields }, type)
}

/** Encodes a message as a stream of events. */
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
          // Clients add the usage of the start to that of the end, so it reports no output.
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

/** Tracks the content blocks of a stream. Each block is closed before the next begins. */
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
    /** Adds text to the open block, or to a new one if the open block has another type. */
    add(block: Block | null, text: string): string {
      if (text === '') return ''
      const opening = block && block.type !== open ? begin(block) : ''
      return opening + delta(deltaOf(open, text))
    },
    /** Closes the last block. An empty completion gets one empty text block. */
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
