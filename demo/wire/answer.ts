import type { Source } from '../documentation.ts'
import { nextTask } from '../task.ts'
import type { ToolRound } from '../tools/types.ts'
import { eventReader } from './sse.ts'
import type { Piece, Question, WireRequest, WireStyle } from './style.ts'

/** A piece of the body as it arrived. */
export interface Arrival {
  /** Milliseconds since the request. */
  at: number
  /** Length of the body with this piece, in characters. */
  length: number
}

/** Milliseconds of events after which the page may paint, when many have arrived at once. */
const SLICE_MS = 8

/** State of one answer, while it arrives and after. */
export interface Answer {
  style: WireStyle
  url: string
  request: WireRequest
  /** Question that the style encoded, from which another style encodes the same request. */
  question?: Question
  /** Pieces of the body, in order. */
  arrivals?: Arrival[]
  /** HTTP status; `undefined` until the headers have arrived. */
  status?: number
  headers?: Headers
  /** Body, exactly as it was received. */
  raw: string
  text: string
  /** Rounds of tool calls before this answer. */
  rounds?: readonly ToolRound[]
  /** Pages of the documentation for which the page chose the model. */
  sources?: readonly Source[]
  /** Reasoning before the text. */
  reasoning?: string
  finish?: string
  promptTokens?: number
  cachedTokens?: number
  completionTokens?: number
  reasoningTokens?: number
  /** Milliseconds from the request to the first text or reasoning. */
  firstText?: number
  /** Milliseconds from the first reasoning to the first text, or to the last reasoning so far. */
  reasoningTime?: number
  /** Milliseconds from the request to the end. */
  end?: number
}

/** Error of a request that the server rejected or did not finish. The message is for the user. */
export class AnswerError extends Error {
  /** HTTP status; 200 if the answer failed in the middle. */
  readonly status: number
  /** Error code for programs, such as `context_length_exceeded`. */
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
 * Sends the request. Resolves when its stream has ended with the marker of its style.
 *
 * @throws AnswerError if the server rejects the request or the stream breaks off. Also throws what
 *   `fetch` throws, such as an `AbortError`.
 */
export async function receive(
  answer: Answer,
  ask: typeof fetch,
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  const began = performance.now()
  const arrivals: Arrival[] = (answer.arrivals = [])
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
  let sliceEnd = began + SLICE_MS
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    answer.raw += part.value
    arrivals.push({ at: performance.now() - began, length: answer.raw.length })
    for (const event of read(part.value)) {
      const piece = answer.style.read(event)
      take(answer, piece, performance.now() - began)
      done ||= piece.done === true
      if (performance.now() < sliceEnd) continue
      onChange()
      await nextTask()
      signal.throwIfAborted()
      sliceEnd = performance.now() + SLICE_MS
    }
    onChange()
  }
  if (!done) throw new AnswerError('The answer broke off before its end. Ask again.', 200)
}

function take(answer: Answer, piece: Piece, at: number): void {
  if (piece.error !== undefined) throw new AnswerError(piece.error, 200, piece.code)
  if (piece.reasoning) {
    answer.reasoning = (answer.reasoning ?? '') + piece.reasoning
    answer.firstText ??= at
    answer.reasoningTime = at - answer.firstText
  }
  if (piece.text) {
    if (answer.reasoning && answer.text === '') answer.reasoningTime = at - (answer.firstText ?? at)
    answer.text += piece.text
    answer.firstText ??= at
  }
  answer.promptTokens = piece.promptTokens ?? answer.promptTokens
  answer.cachedTokens = piece.cachedTokens ?? answer.cachedTokens
  answer.completionTokens = piece.completionTokens ?? answer.completionTokens
  answer.reasoningTokens = piece.reasoningTokens ?? answer.reasoningTokens
  answer.finish = piece.finish ?? answer.finish
  if (piece.text || piece.reasoning || piece.finish) answer.end = at
}

function refusal({ raw, url, status = 0 }: Answer): AnswerError {
  try {
    const { error } = JSON.parse(raw) as ErrorBody
    if (error?.message) return new AnswerError(error.message, status, error.code ?? undefined)
  } catch {
    // The server in this page sends errors as JSON, so this one is from somebody else.
  }
  const what = `${new URL(url).pathname} failed with status ${status}.`
  return new AnswerError(`${what} Reload the page and ask again.`, status)
}

/** Returns tokens per second from the first text to the end; `undefined` if not known. */
export function tokensPerSecond(
  answer: Pick<Answer, 'completionTokens' | 'firstText' | 'end'>,
): number | undefined {
  const { completionTokens, firstText, end } = answer
  if (completionTokens === undefined || firstText === undefined || end === undefined)
    return undefined
  // The clock starts with the first token.
  const tokens = completionTokens - 1
  return tokens > 0 && end > firstText ? (tokens / (end - firstText)) * 1_000 : undefined
}
