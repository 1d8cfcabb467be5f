/** Returns the answer of a prompt as a stream. */
import { makeIterable } from './iterable-stream.ts'
import type { Session } from './session.ts'
import type {
  LanguageModelChunk,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
} from './types.ts'

/**
 * Prompts the session. The stream ends with the answer, or errors as `prompt()` rejects. Canceling it
 * ends the prompt, which leaves no trace in the session.
 *
 * @throws the reason of a signal that is aborted already.
 */
export function streamPrompt(
  session: Session,
  prompt: LanguageModelPrompt,
  options: LanguageModelPromptOptions,
): ReadableStream<LanguageModelChunk> {
  session.ended.throwIfAborted()
  options.signal?.throwIfAborted()
  const canceling = new AbortController()
  const signals = [canceling.signal, ...(options.signal ? [options.signal] : [])]
  const signal = AbortSignal.any(signals)
  const stream = new ReadableStream<LanguageModelChunk>({
    start(controller) {
      const write = (part: LanguageModelChunk): void => controller.enqueue(part)
      session.prompt(prompt, { ...options, signal }, write).then(
        (answer) => {
          if (canceling.signal.aborted) return
          const parts = typeof answer === 'string' ? [] : answer
          // Their text was written before.
          for (const part of parts) if (part.type !== 'text') write(part)
          controller.close()
        },
        (thrown: unknown) => {
          if (!canceling.signal.aborted) controller.error(thrown)
        },
      )
    },
    cancel() {
      canceling.abort()
    },
  })
  return makeIterable(stream)
}
