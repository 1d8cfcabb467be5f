import type { Piece, WireStyle } from './style.ts'

interface Chunk {
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[]
  usage?: { prompt_tokens: number; completion_tokens: number } | null
  error?: { message: string }
}

/** Style of `POST /v1/chat/completions`: the system prompt is a message, the end is `[DONE]`. */
export const completions: WireStyle = {
  request({ model, history, question, images = [], settings }) {
    const { system, temperature, maxTokens, seed } = settings
    const toPart = (url: string) => ({ type: 'image_url', image_url: { url } })
    const text = { type: 'text', text: question }
    const messages = [
      ...(system ? [{ role: 'system', content: system }] : []),
      ...history.flatMap((past) => [
        { role: 'user', content: past.question },
        { role: 'assistant', content: past.answer },
      ]),
      { role: 'user', content: images.length > 0 ? [...images.map(toPart), text] : question },
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
