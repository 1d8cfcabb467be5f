import { roundMessages } from '../tools/wire.ts'
import { EFFORTS, samplingFields, toFailure, type Piece, type WireStyle } from './style.ts'

interface ResponseBody {
  incomplete_details?: { reason?: string } | null
  error?: { message?: string; code?: string | null } | null
  usage?: {
    input_tokens: number
    output_tokens: number
    input_tokens_details?: { cached_tokens?: number }
    output_tokens_details?: { reasoning_tokens?: number }
  } | null
}

/** An event of the stream. Those of other types carry nothing that is shown. */
type ResponseEvent =
  | { type: 'response.output_text.delta' | 'response.reasoning_summary_text.delta'; delta: string }
  | {
      type: 'response.completed' | 'response.incomplete' | 'response.failed'
      response: ResponseBody
    }
  | { type: 'error'; message: string; code?: string | null }

function toContent(question: string, images: readonly string[] = []): string | object[] {
  if (images.length === 0) return question
  const parts = images.map((image_url) => ({ type: 'input_image', image_url, detail: 'auto' }))
  return [...parts, { type: 'input_text', text: question }]
}

function toLastPiece(type: string, { usage, incomplete_details, error }: ResponseBody): Piece {
  if (type === 'response.failed') return toFailure(error ?? {})
  return {
    done: true,
    finish: incomplete_details?.reason ?? type.replace('response.', ''),
    promptTokens: usage?.input_tokens,
    completionTokens: usage?.output_tokens,
    cachedTokens: usage?.input_tokens_details?.cached_tokens,
    reasoningTokens: usage?.output_tokens_details?.reasoning_tokens,
  }
}

/** Style of `POST /v1/responses`: items in place of messages, the end is `response.completed`. */
export const responses: WireStyle = {
  unsupported: { stop: 'The style Responses has no stop sequences. The other two have.' },
  efforts: EFFORTS,
  canContinue: false,
  request({ model, history, question, images, settings }) {
    const { system, maxTokens, effort, schema } = settings
    const input = [
      ...history.flatMap((past) => [
        { role: 'user', content: toContent(past.question, past.images) },
        ...(past.rounds ?? []).flatMap((round) => roundMessages('responses', round)),
        { role: 'assistant', content: past.answer },
      ]),
      { role: 'user', content: toContent(question, images) },
    ]
    const format = schema && { type: 'json_schema', name: 'answer', schema, strict: true }
    return {
      path: 'responses',
      headers: { 'content-type': 'application/json' },
      body: {
        model,
        instructions: system || undefined,
        input,
        max_output_tokens: maxTokens,
        ...samplingFields(settings),
        reasoning: effort && { effort },
        text: format && { format },
        // The conversation is sent whole each time, so the server need not keep it.
        store: false,
        stream: true,
      },
    }
  },
  read({ data }) {
    const event = JSON.parse(data) as ResponseEvent
    switch (event.type) {
      case 'response.output_text.delta':
        return { text: event.delta }
      case 'response.reasoning_summary_text.delta':
        return { reasoning: event.delta }
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return toLastPiece(event.type, event.response)
      case 'error':
        return toFailure(event)
      default:
        return {}
    }
  },
}
