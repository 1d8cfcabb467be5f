import { roundMessages } from '../tools/wire.ts'
import { EFFORTS, samplingFields, toFailure, type Piece, type WireStyle } from './style.ts'

interface Usage {
  prompt_tokens: number
  completion_tokens: number
  prompt_tokens_details?: { cached_tokens?: number } | null
  completion_tokens_details?: { reasoning_tokens?: number } | null
}

interface Chunk {
  choices?: {
    delta?: { content?: string | null; reasoning_content?: string | null }
    finish_reason?: string | null
  }[]
  usage?: Usage | null
  error?: { message: string; code?: string | null }
}

function toContent(question: string, images: readonly string[] = []): string | object[] {
  if (images.length === 0) return question
  const parts = images.map((url) => ({ type: 'image_url', image_url: { url } }))
  return [...parts, { type: 'text', text: question }]
}

/** Style of `POST /v1/chat/completions`: the system prompt is a message, the end is `[DONE]`. */
export const completions: WireStyle = {
  unsupported: {},
  efforts: EFFORTS,
  canContinue: true,
  request({ model, history, question, images, rounds = [], prefill, settings }) {
    const { system, maxTokens, stop, effort, schema } = settings
    const messages = [
      ...(system ? [{ role: 'system', content: system }] : []),
      ...history.flatMap((past) => [
        { role: 'user', content: toContent(past.question, past.images) },
        ...(past.rounds ?? []).flatMap((round) => roundMessages('chat/completions', round)),
        { role: 'assistant', content: past.answer },
      ]),
      { role: 'user', content: toContent(question, images) },
      ...rounds.flatMap((round) => roundMessages('chat/completions', round)),
      ...(prefill ? [{ role: 'assistant', content: prefill }] : []),
    ]
    const limits = { ...samplingFields(settings), max_completion_tokens: maxTokens, stop }
    const format = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } }
    // An answer that continues takes no format, because its beginning may not follow it.
    const shape = {
      reasoning_effort: effort,
      response_format: schema && !prefill ? format : undefined,
    }
    const continued = prefill ? { continue_final_message: true } : {}
    const stream = { stream: true, stream_options: { include_usage: true } }
    return {
      path: 'chat/completions',
      headers: { 'content-type': 'application/json' },
      body: { model, messages, ...continued, ...limits, ...shape, ...stream },
    }
  },
  read({ data }) {
    if (data === '[DONE]') return { done: true }
    const chunk = JSON.parse(data) as Chunk
    if (chunk.error) return toFailure(chunk.error)
    const [choice] = chunk.choices ?? []
    const piece: Piece = {}
    if (choice?.delta?.content) piece.text = choice.delta.content
    if (choice?.delta?.reasoning_content) piece.reasoning = choice.delta.reasoning_content
    if (choice?.finish_reason) piece.finish = choice.finish_reason
    if (chunk.usage) {
      piece.promptTokens = chunk.usage.prompt_tokens
      piece.completionTokens = chunk.usage.completion_tokens
      piece.cachedTokens = chunk.usage.prompt_tokens_details?.cached_tokens
      piece.reasoningTokens = chunk.usage.completion_tokens_details?.reasoning_tokens
    }
    return piece
  },
}
