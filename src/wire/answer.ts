import { InoriginError } from '../error.ts'
import type { GenerationEvent, LoadProgress } from '../types/index.ts'
import type { Work } from './work.ts'

/** How one style puts a generation, or a prediction, into words. */
export interface Encoder<Event = GenerationEvent> {
  /** The content type. */
  readonly type: string
  /** The text that goes out for an event; empty for none. */
  encode(event: Event): string
  /** The last words of a generation that failed late. Absent: the body is aborted instead. */
  fail?(error: InoriginError): string
  /**
   * What is to be done once, before the last words go out or when nobody waits for them any more.
   * Resolves with those words, where they depend on it.
   */
  settle?(): Promise<string>
}

/**
 * The body of an answer: one event is read when the consumer asks for more, up to the one of type
 * `finish`. A consumer that cancels ends the work; work that is aborted breaks the body off, as fetch
 * does. `inWords` puts a late failure into the words of the request.
 */
export function answerBody<Event extends { type: string }>(
  events: AsyncIterable<Event>,
  encoder: Encoder<Event>,
  work: Work,
  inWords: (error: InoriginError) => InoriginError,
): ReadableStream<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]()
  const utf8 = new TextEncoder()
  const { signal } = work
  let settled: Promise<string> | undefined
  const settle = (): Promise<string> => (settled ??= encoder.settle?.() ?? Promise.resolve(''))

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const stop = (): void => {
          controller.error(signal.reason)
          void settle()
          void abandon(iterator)
        }
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop, { once: true })
      },
      async pull(controller) {
        let text = ''
        let last = false
        try {
          while (text === '' && !last) {
            const { done, value } = await iterator.next()
            if (done) throw new InoriginError('internal', 'The answer broke off before its end.')
            text = encoder.encode(value)
            last = value.type === 'finish'
          }
        } catch (thrown) {
          const error = inWords(InoriginError.from(thrown))
          if (encoder.fail === undefined) return controller.error(error)
          text = encoder.fail(error)
          last = true
        }
        if (last) text += await settle()
        if (signal.aborted) return
        controller.enqueue(utf8.encode(text))
        if (!last) return
        controller.close()
        void abandon(iterator)
      },
      // Not at once: in WebKit, a listener that an abort runs inside of `cancel` hangs every later fetch
      // of the origin.
      cancel() {
        queueMicrotask(() => work.cancel())
      },
    },
    // Nothing is read ahead: a consumer that stops reading stops the model.
    { highWaterMark: 0 },
  )
}

async function abandon(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // There is no one left to tell.
  }
}

const PHASE = {
  download: 'downloading',
  compile: 'compiling',
  warm: 'warming',
  ready: 'ready',
} as const

/** Progress in a few words, such as `downloading @acme/tiny 45% 3.1 MB/s`. */
export function progressText({
  tag,
  phase,
  loadedBytes,
  totalBytes,
  bytesPerSecond,
}: LoadProgress): string {
  const words: string[] = [PHASE[phase], tag]
  if (totalBytes > 0) words.push(`${Math.floor((100 * loadedBytes) / totalBytes)}%`)
  if (bytesPerSecond > 0) words.push(`${(bytesPerSecond / 1e6).toFixed(1)} MB/s`)
  return words.join(' ')
}
