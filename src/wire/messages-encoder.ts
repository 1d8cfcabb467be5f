import type { FinishReason, Usage } from '../types/index.ts'
import {
  type CompletionPart,
  encodeStatus,
  type EventEncoder,
  type FinishEvent,
  jsonEncoder,
} from './response-body.ts'
import { wireError } from './errors.ts'
import { createId, frame, SSE_TYPE } from './http.ts'
import type { MessagesBody } from './messages.ts'
import { toReasoning } from './shared-fields.ts'
import { toToolUseId } from './tools.ts'

const STOP_REASON = {
  stop: 'end_turn',
  length: 'max_tokens',
  stop_sequence: 'stop_sequence',
  tool_calls: 'tool_use',
} as const satisfies Record<FinishReason, string>

/** Returns the usage. This style counts cached tokens apart from the input tokens. */
function toUsageJson({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens - cachedTokens,
    output_tokens: completionTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}

/** Returns the fields that say why generation stopped. */
function toStopFields({ reason, stopSequence }: FinishEvent) {
  return {
    stop_reason: STOP_REASON[reason],
    stop_sequence: reason === 'stop_sequence' ? stopSequence : null,
  }
}

/** Encodes a message as one JSON body, or as a stream of events. */
export function messageEncoder(body: MessagesBody): EventEncoder {
  const head = { id: createId('msg_'), type: 'message', role: 'assistant', model: body.model }
  const isReasoningShown = toReasoning(body).shown
  if (body.stream) return streamEncoder(head, isReasoningShown)
  return jsonEncoder((parts, finish) => {
    const shown = parts.filter(({ type }) => isReasoningShown || type !== 'reasoning')
    const blocks = shown.map(toBlock)
    const content = blocks.length > 0 ? blocks : [{ type: 'text', text: '' }]
    return { ...head, content, ...toStopFields(finish), usage: toUsageJson(finish.usage) }
  })
}

function toBlock(part: CompletionPart) {
  switch (part.type) {
    case 'reasoning':
      return { type: 'thinking', thinking: part.text, signature: createSignature() }
    case 'text':
      return { type: 'text', text: part.text }
    case 'call':
      return { ...toToolUse(part), ...toInput(part.arguments) }
  }
}

const toToolUse = ({ id, name }: { id: string; name: string }) =>
  ({ type: 'tool_use', id: toToolUseId(id), name }) as const

/**
 * Returns the input of a call. If a limit has cut the call, the input is empty, and the text is told
 * in `partial_json`, the name that it has in streams. This is an extension.
 */
function toInput(text: string): { input: unknown; partial_json?: string } {
  try {
    return { input: JSON.parse(text) }
  } catch {
    return { input: {}, ...(text !== '' && { partial_json: text }) }
  }
}

/** Returns a signature for reasoning. Clients require one and send it back; nothing verifies it. */
const createSignature = () => createId('sig_')

/** Encodes a frame whose event name is its type, which this style requires. */
const typedFrame = (type: string, fields: object = {}) => frame({ type, ...fields }, type)

function streamEncoder(head: object, isReasoningShown: boolean): EventEncoder {
  const ping = typedFrame('ping')
  const blocks = new BlockStream()
  return {
    type: SSE_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
          return encodeStatus(event) + ping
        case 'served_by':
          return encodeStatus(event)
        case 'heartbeat':
          return ping
        case 'start': {
          // Clients add the usage of the start to that of the end, so it reports no output.
          const usage = toUsageJson({ ...event, completionTokens: 0, reasoningTokens: 0 })
          return typedFrame('message_start', {
            message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage },
          })
        }
        case 'reasoning':
          return isReasoningShown ? blocks.add(THINKING, event.text) : ''
        case 'text':
          return blocks.add(TEXT, event.text)
        case 'tool_call':
          return blocks.begin({ ...toToolUse(event), input: {} })
        case 'tool_arguments':
          return blocks.add(null, event.text)
        case 'finish':
          return (
            blocks.end() +
            typedFrame('message_delta', {
              delta: toStopFields(event),
              usage: toUsageJson(event.usage),
            }) +
            typedFrame('message_stop')
          )
      }
    },
    fail: (error) => {
      const { type, message } = wireError(error)
      return typedFrame('error', { error: { type, message } })
    },
  }
}

type Block = { type: 'text' | 'thinking' | 'tool_use' } & Record<string, unknown>

const TEXT: Block = { type: 'text', text: '' }
const THINKING: Block = { type: 'thinking', thinking: '', signature: '' }

/** The content blocks of a stream. Each block is closed before the next begins. */
class BlockStream {
  #open: Block['type'] | null = null
  #index = -1

  begin(block: Block): string {
    const stopFrame = this.#close()
    this.#open = block.type
    this.#index += 1
    return stopFrame + this.#frame('start', { content_block: block })
  }

  /** Adds text to the open block, or to a new one if the open block has another type. */
  add(block: Block | null, text: string): string {
    if (text === '') return ''
    const startFrame = block && block.type !== this.#open ? this.begin(block) : ''
    return startFrame + this.#frame('delta', { delta: toDelta(this.#open, text) })
  }

  /** Closes the last block. An empty completion gets one empty text block. */
  end(): string {
    return (this.#index < 0 ? this.begin(TEXT) : '') + this.#close()
  }

  #close(): string {
    if (this.#open === null) return ''
    const signature = { type: 'signature_delta', signature: createSignature() }
    const signed = this.#open === 'thinking' ? this.#frame('delta', { delta: signature }) : ''
    this.#open = null
    return signed + this.#frame('stop', {})
  }

  #frame(type: 'start' | 'delta' | 'stop', fields: object): string {
    return typedFrame(`content_block_${type}`, { index: this.#index, ...fields })
  }
}

function toDelta(type: Block['type'] | null, text: string): object {
  if (type === 'thinking') return { type: 'thinking_delta', thinking: text }
  if (type === 'tool_use') return { type: 'input_json_delta', partial_json: text }
  return { type: 'text_delta', text }
}
