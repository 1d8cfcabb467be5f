import type { FinishReason, GenerationEvent, Usage } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { progressText } from './answer.ts'
import { wireError } from './errors.ts'
import { id } from './id.ts'
import { JSON_TYPE, SSE_TYPE } from './reply.ts'
import { comment, frame } from './sse.ts'

const STOP = {
  stop: 'end_turn',
  length: 'max_tokens',
  stop_sequence: 'stop_sequence',
  tool_calls: 'tool_use',
} as const satisfies Record<FinishReason, string>

type Finish = Extract<GenerationEvent, { type: 'finish' }>

/** Cached tokens are counted apart from the input here. */
function usageOf({ promptTokens, cachedTokens, completionTokens }: Usage) {
  return {
    input_tokens: promptTokens - cachedTokens,
    output_tokens: completionTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
  }
}

function ending(event: Finish) {
  return { stop_reason: STOP[event.reason], stop_sequence: event.stopSequence }
}

/** A message as one JSON body; leading spaces while it is being made. */
export function messageJson(model: string): Encoder {
  const head = { id: id('msg_'), type: 'message', role: 'assistant', model }
  let text = ''
  return {
    type: JSON_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
        case 'heartbeat':
          return ' '
        case 'start':
          return ''
        case 'text':
          text += event.text
          return ''
        case 'reasoning':
        case 'tool_call':
        case 'tool_arguments':
          // Nothing that leads to these is let in yet.
          return ''
        case 'finish': {
          const content = [{ type: 'text', text }]
          return JSON.stringify({ ...head, content, ...ending(event), usage: usageOf(event.usage) })
        }
      }
    },
  }
}

/** A frame whose name is its type, as this style wants it. */
function typed(type: string, fields: object = {}): string {
  return frame({ type, ...fields }, type)
}

/** A message as a stream of events. */
export function messageStream(model: string): Encoder {
  const head = { id: id('msg_'), type: 'message', role: 'assistant', model, content: [] }
  const ping = typed('ping')
  let open = false
  /** An empty answer has a text block too, so it is opened by the first text or by the end. */
  const opened = (): string => {
    if (open) return ''
    open = true
    return typed('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  }
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
        case 'text': {
          if (event.text === '') return ''
          const delta = { type: 'text_delta', text: event.text }
          return opened() + typed('content_block_delta', { index: 0, delta })
        }
        case 'reasoning':
        case 'tool_call':
        case 'tool_arguments':
          // Nothing that leads to these is let in yet.
          return ''
        case 'finish':
          return (
            opened() +
            typed('content_block_stop', { index: 0 }) +
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
