import { InoriginError } from '../error.ts'
import type { GenerationEvent, LoadProgress, TokenLogprob, ToolCall } from '../types/index.ts'
import { type Cancellation, comment, JSON_TYPE } from './http.ts'

/** Encoder of the events of a generation or prediction in one API style. */
export interface EventEncoder<Event = GenerationEvent> {
  /** Content type of the response. */
  readonly type: string
  /** Returns the text or the bytes for an event, empty if there is nothing to send. */
  encode(event: Event): string | Uint8Array<ArrayBuffer>
  /**
   * Returns the last text after a failure, or throws to make the body fail. Absent: the text is the JSON
   * of the error.
   */
  fail?(error: InoriginError): string
  /** Resolves with the last text to append. Runs once, also after the client has left. */
  settle?(): Promise<string>
}

/**
 * Creates the body of a response. Events are read when the consumer asks for more, up to the one of
 * type `finish`; after it, the end of the stream is read. Cancelling the body cancels the work, and
 * aborted work makes the body fail, as in `fetch`. `encodeError` returns the last text after a late
 * error, because the status has been sent.
 */
export function createResponseBody<Event extends { type: string }>(
  events: AsyncIterable<Event>,
  encoder: EventEncoder<Event>,
  cancellation: Cancellation,
  encodeError: (error: InoriginError) => string,
): ReadableStream<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]()
  const utf8 = new TextEncoder()
  const { signal } = cancellation
  let settling: Promise<string> | undefined
  const settle = (): Promise<string> => (settling ??= encoder.settle?.() ?? Promise.resolve(''))

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const stop = (): void => {
          controller.error(signal.reason)
          void settle()
          void leave(iterator, false)
        }
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop, { once: true })
      },
      async pull(controller) {
        let chunk: string | Uint8Array<ArrayBuffer> = ''
        let text = ''
        let last = false
        let hasFailed = false
        try {
          while (chunk.length === 0 && !last) {
            const { done, value } = await iterator.next()
            if (done) throw new InoriginError('internal', 'The response ended before it finished.')
            chunk = encoder.encode(value)
            last = value.type === 'finish'
          }
          if (last) text = await settle()
        } catch (thrown) {
          hasFailed = true
          last = true
          text += encodeError(InoriginError.from(thrown))
          // What cannot be stored either is part of the same failure.
          text += await settle().catch(() => '')
        }
        if (signal.aborted) return
        const bytes = typeof chunk === 'string' ? utf8.encode(chunk + text) : chunk
        controller.enqueue(bytes)
        if (bytes === chunk && text !== '') controller.enqueue(utf8.encode(text))
        if (!last) return
        controller.close()
        void leave(iterator, !hasFailed)
      },
      // WebKit hangs every later fetch of the origin if an abort listener runs inside of `cancel`.
      cancel() {
        queueMicrotask(() => cancellation.cancel())
      },
    },
    // Events wait in the model's worker, whose window has a bound, and not in this stream.
    { highWaterMark: 0 },
  )
}

/** Leaves the events. To leave a finished stream before its end would cancel it for its writer. */
async function leave(iterator: AsyncIterator<unknown>, isFinished: boolean): Promise<void> {
  try {
    if (isFinished) while (!(await iterator.next()).done);
    else await iterator.return?.()
  } catch {
    // The response is complete, or the consumer has left, so nobody can receive this error.
  }
}

/** Event about the work on a response, which has no content. */
type StatusEvent = Extract<GenerationEvent, { type: 'progress' | 'served_by' | 'heartbeat' }>

/** Encodes an event about the work as a comment, such as `served by upstream`. */
export function encodeStatus(event: StatusEvent): string {
  switch (event.type) {
    case 'progress':
      return comment(formatProgress(event.progress))
    case 'served_by':
      return comment(`${event.continues ? 'continued' : 'served'} by ${event.servedBy}`)
    case 'heartbeat':
      return comment('heartbeat')
  }
}

const PHASE_TEXT = {
  download: 'downloading',
  compile: 'compiling',
  warm: 'warming',
  ready: 'ready',
} as const

/** Formats progress, such as `downloading @acme/tiny 45% 3.1 MB/s`. */
function formatProgress(progress: LoadProgress): string {
  const { tag, phase, loadedBytes, totalBytes, bytesPerSecond } = progress
  const parts: string[] = [PHASE_TEXT[phase], tag]
  if (totalBytes > 0) parts.push(`${Math.floor((100 * loadedBytes) / totalBytes)}%`)
  if (bytesPerSecond > 0) parts.push(`${(bytesPerSecond / 1e6).toFixed(1)} MB/s`)
  return parts.join(' ')
}

// Collects the events of a generation for a response with one JSON body.

/** Part of a completion, in the order of generation. */
export type CompletionPart =
  | { type: 'reasoning'; text: string }
  | { type: 'text'; text: string; logprobs: TokenLogprob[] }
  /** A call. That of a custom tool has a text in place of arguments. */
  | ({ type: 'call'; isCustom?: boolean | undefined } & ToolCall)

export type FinishEvent = Extract<GenerationEvent, { type: 'finish' }>

/** Creates an encoder for one JSON body. Spaces are sent ahead of it as heartbeats. */
export function jsonEncoder(
  toJson: (parts: readonly CompletionPart[], finish: FinishEvent) => object | Promise<object>,
): EventEncoder {
  const parts: CompletionPart[] = []
  let finish: FinishEvent | null = null
  return {
    type: JSON_TYPE,
    encode(event) {
      if (event.type === 'progress' || event.type === 'heartbeat') return ' '
      if (event.type === 'finish') finish = event
      const last = parts.at(-1)
      const part = findPart(event, last)
      if (part && part !== last) parts.push(part)
      if (part && 'text' in event) extendPart(part, event.text, logprobsOf(event))
      return ''
    },
    settle: async () => (finish ? JSON.stringify(await toJson(parts, finish)) : ''),
  }
}

/** Returns the part that an event belongs to: `last`, or a new empty one. */
export function findPart(
  event: GenerationEvent,
  last: CompletionPart | undefined,
): CompletionPart | undefined {
  switch (event.type) {
    case 'reasoning':
      return last?.type === 'reasoning' ? last : { type: 'reasoning', text: '' }
    case 'text':
      return last?.type === 'text' ? last : { type: 'text', text: '', logprobs: [] }
    case 'tool_call': {
      const { id, name, isCustom } = event
      return { type: 'call', id, name, arguments: '', isCustom }
    }
    case 'tool_arguments':
      return last?.type === 'call' ? last : undefined
  }
}

export function extendPart(
  part: CompletionPart,
  text: string,
  logprobs: readonly TokenLogprob[],
): void {
  if (part.type === 'call') part.arguments += text
  else part.text += text
  if (part.type === 'text') part.logprobs.push(...logprobs)
}

export const logprobsOf = (event: GenerationEvent): readonly TokenLogprob[] =>
  (event.type === 'text' && event.logprobs) || []
