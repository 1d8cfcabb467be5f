import { eventReader } from './sse.ts'
import type { Piece, WireRequest, WireStyle } from './style.ts'

/** What can be known of one answer, while it comes and after. */
export interface Answer {
  style: WireStyle
  url: string
  request: WireRequest
  /** HTTP status; undefined until the headers are here. */
  status?: number
  headers?: Headers
  /** The body, exactly as it was received. */
  raw: string
  text: string
  finish?: string
  promptTokens?: number
  completionTokens?: number
  /** Milliseconds from the request to the first text. */
  firstText?: number
  /** Milliseconds from the request to the end. */
  end?: number
}

/** The server refused, failed or fell silent. The message is for the reader. */
export class AnswerError extends Error {
  /** HTTP status; 200 when it failed in the middle of an answer. */
  readonly status: number
  /** The reason as a word for programs, such as `context_length_exceeded`. */
  readonly code: string | undefined

  constructor(message: string, status: number, code?: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

interface ErrorBody {
  error?: { message?: string; code?: string | null }
}

/**
 * Sends the request and resolves when its stream has ended as it should.
 *
 * @throws AnswerError also for a stream that breaks off; whatever `fetch` throws, an abort included.
 */
export async function receive(
  answer: Answer,
  ask: typeof fetch,
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  const began = performance.now()
  const { headers, body } = answer.request
  const response = await ask(answer.url, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal,
  })
  answer.status = response.status
  answer.headers = response.headers
  onChange()
  if (!response.ok || !response.body) {
    answer.raw = await response.text()
    onChange()
    throw refusal(answer)
  }
  const read = eventReader()
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let done = false
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    answer.raw += part.value
    for (const event of read(part.value)) {
      const piece = answer.style.read(event)
      take(answer, piece, performance.now() - began)
      done ||= piece.done === true
    }
    onChange()
  }
  if (!done) throw new AnswerError('The answer broke off before its end. Ask again.', 200)
}

function take(answer: Answer, piece: Piece, at: number): void {
  if (piece.error !== undefined) throw new AnswerError(piece.error, 200)
  if (piece.text) {
    answer.text += piece.text
    answer.firstText ??= at
  }
  answer.promptTokens = piece.promptTokens ?? answer.promptTokens
  answer.completionTokens = piece.completionTokens ?? answer.completionTokens
  answer.finish = piece.finish ?? answer.finish
  if (piece.text || piece.finish) answer.end = at
}

function refusal({ raw, url, status = 0 }: Answer): AnswerError {
  try {
    const { error } = JSON.parse(raw) as ErrorBody
    if (error?.message) return new AnswerError(error.message, status, error.code ?? undefined)
  } catch {
    // Not from the server in this page: its errors are JSON.
  }
  const what = `${new URL(url).pathname} answered ${status} without saying why.`
  return new AnswerError(`${what} Reload the page and ask again.`, status)
}

/** Tokens per second from the first text to the end, or undefined while that cannot be told. */
export function tokensPerSecond(answer: Answer): number | undefined {
  const { completionTokens, firstText, end } = answer
  if (completionTokens === undefined || firstText === undefined || end === undefined)
    return undefined
  // The first token had come when the clock started.
  const tokens = completionTokens - 1
  return tokens > 0 && end > firstText ? (tokens / (end - firstText)) * 1_000 : undefined
}
