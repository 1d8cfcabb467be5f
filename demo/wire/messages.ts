import { roundMessages } from '../tools/wire.ts'
import { EFFORTS, samplingFields, type Piece, type Settings, type WireStyle } from './style.ts'

/** Value of `max_tokens`, which this style requires, if neither user nor model sets one. */
const MAX_TOKENS = 1_024

type Frame =
  | {
      type: 'message_start'
      message: { usage: { input_tokens: number; cache_read_input_tokens?: number } }
    }
  | { type: 'content_block_delta'; delta: { type: string; text?: string; thinking?: string } }
  | {
      type: 'message_delta'
      delta: { stop_reason: string | null }
      usage: {
        output_tokens: number
        output_tokens_details?: { thinking_tokens?: number }
      }
    }
  | { type: 'message_stop' }
  | { type: 'error'; error: { message: string } }
  | { type: 'ping' | 'content_block_start' | 'content_block_stop' }

function toContent(question: string, images: readonly string[] = []): string | object[] {
  if (images.length === 0) return question
  const blocks = images.map((url) => ({ type: 'image', source: { type: 'url', url } }))
  return [...blocks, { type: 'text', text: question }]
}

/** Returns the fields of the reasoning effort, which this style switches off by another one. */
function toThinking({ effort }: Settings): object {
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  return effort ? { thinking: { type: 'adaptive' } } : {}
}

/** Style of `POST /v1/messages`: a separate system prompt, the end is `message_stop`. */
export const messages: WireStyle = {
  unsupported: {},
  efforts: EFFORTS.filter((effort) => effort !== 'minimal'),
  canContinue: true,
  request({ model, modelMaxTokens, history, question, images, rounds = [], prefill, settings }) {
    const { system, maxTokens, stop, effort, schema } = settings
    const turns = [
      ...history.flatMap((past) => [
        { role: 'user', content: toContent(past.question, past.images) },
        ...(past.rounds ?? []).flatMap((round) => roundMessages('messages', round)),
        { role: 'assistant', content: past.answer },
      ]),
      { role: 'user', content: toContent(question, images) },
      ...rounds.flatMap((round) => roundMessages('messages', round)),
      // A space at the end is refused.
      ...(prefill ? [{ role: 'assistant', content: prefill.trimEnd() }] : []),
    ]
    const limits = {
      max_tokens: maxTokens ?? modelMaxTokens ?? MAX_TOKENS,
      ...samplingFields(settings),
      stop_sequences: stop,
    }
    // An answer that continues takes neither reasoning, which precedes it, nor a format.
    const level = prefill || effort === 'none' ? undefined : effort
    const format = schema && !prefill ? { type: 'json_schema', schema } : undefined
    const config = level || format ? { effort: level, format } : undefined
    return {
      path: 'messages',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: {
        model,
        system: system || undefined,
        messages: turns,
        ...limits,
        ...(prefill ? {} : toThinking(settings)),
        output_config: config,
        stream: true,
      },
    }
  },
  read({ data }) {
    const frame = JSON.parse(data) as Frame
    const piece: Piece = {}
    switch (frame.type) {
      case 'message_start': {
        const { input_tokens, cache_read_input_tokens = 0 } = frame.message.usage
        piece.promptTokens = input_tokens + cache_read_input_tokens
        piece.cachedTokens = cache_read_input_tokens
        break
      }
      case 'content_block_delta':
        if (frame.delta.text) piece.text = frame.delta.text
        if (frame.delta.thinking) piece.reasoning = frame.delta.thinking
        break
      case 'message_delta':
        if (frame.delta.stop_reason) piece.finish = frame.delta.stop_reason
        piece.completionTokens = frame.usage.output_tokens
        piece.reasoningTokens = frame.usage.output_tokens_details?.thinking_tokens
        break
      case 'message_stop':
        piece.done = true
        break
      case 'error':
        piece.error = frame.error.message
    }
    return piece
  },
}
