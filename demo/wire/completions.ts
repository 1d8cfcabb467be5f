import type { Piece, WireStyle } from './style.ts'

interface Chunk {
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[]
  usage?: { prompt_tokens: number; completion_tokens: number } | null
  error?: { message: string }
}

function toContent(question: string, images: readonly string[] = []): string | object[] {
  if (images.length === 0) return question
  const parts = images.map((url) => ({ type: 'image_url', image_url: { url } }))
  return [...parts, { type: 'text', text: question }]
}

/** Style of `POST /v1/chat/completions`: the system prompt is a message, the end is `[DONE]`. */
export const completions: WireStyle = {
  request({ model, history, question, images, settings }) {
    const { system, temperature, maxTokens, seed } = settings
    const messages = [
      ...(system ? [{ role: 'system', content: system }] : []),
      ...history.flatMap((past) => [
        { role: 'user', content: toContent(past.question, past.images) },
        { role: 'assistant', content: past.answer },
      ]),
      { role: 'user', content: toContent(question, images) },
    ]
    const limits = { temperature, max_completion_tokens: maxTokens, seed }
    const stream = { stream: true, stream_options: { include_usage: true } }
    return {
      path: 'chat/completions',
      headers: { 'content-type': 'application/json' },
      body: { model, messages, ...limits, ...stream },
    }
  },
  read({ data }) {
    if (data === '[DONE]') return { done: true }
    const chunk = JSON.parse(data) as Chunk
    if (chunk.error) return { error: chunk.error.message }
    const [choice] = chunk.choices ?? []
    const piece: Piece = {}
    if (choice?.delta?.content) piece.text = choice.delta.content
    if (choice?.finish_reason) piece.finish = choice.finish_reason
    if (chunk.usage) {
      piece.promptTokens = chunk.usage.prompt_tokens
      piece.completionTokens = chunk.usage.completion_tokens
    }
    return piece
  },
}
