/** Emits the text of an answer up to the first stop sequence, with the logprobs of its tokens. */
import type { TextChunk } from '../engine/engine.ts'
import type { GenerationEvent, GenerationRequest } from '../types/index.ts'
import { createLogprobBuffer } from './logprobs.ts'
import { createStopMatcher } from './stop-sequences.ts'

export interface TextWriter {
  /** Number of characters that the engine has produced, reasoning and calls included. */
  readonly producedCharacters: number
  /** Receives a piece of the engine before the text in it is written. */
  receive(piece: TextChunk): void
  /**
   * Writes text that begins at this position, in characters of all that the engine produced.
   * Returns the stop sequence that was found, or `null`.
   */
  write(text: string, position: number): string | null
  /** Emits the text that was held back as the possible beginning of a stop sequence. */
  flush(): void
  /** `true` if all that the engine produced is emitted. */
  readonly isComplete: boolean
  /** Emits the logprobs of tokens without text, which end within an incomplete character. */
  emitRemainingLogprobs(): void
}

export function createTextWriter(
  { stop, logprobs }: Pick<GenerationRequest, 'stop' | 'logprobs'>,
  emit: (event: GenerationEvent) => void,
): TextWriter {
  const stopMatcher = createStopMatcher(stop)
  const buffer = logprobs === undefined ? null : createLogprobBuffer()
  let producedCharacters = 0
  /** Position of the first character that is held back or, if none is, that is emitted next. */
  let nextPosition = 0
  let heldCharacters = 0

  const emitText = (text: string): void => {
    if (text === '') return
    const tokenLogprobs = buffer?.take(nextPosition, nextPosition + text.length)
    nextPosition += text.length
    heldCharacters -= text.length
    emit({ type: 'text', text, ...(tokenLogprobs && { logprobs: tokenLogprobs }) })
  }

  return {
    get producedCharacters() {
      return producedCharacters
    },
    receive(piece) {
      producedCharacters += piece.text.length
      buffer?.add(piece)
    },
    write(text, position) {
      if (heldCharacters === 0) nextPosition = position
      heldCharacters += text.length
      const { text: releasedText, match } = stopMatcher.push(text)
      emitText(releasedText)
      return match
    },
    flush: () => emitText(stopMatcher.flush()),
    get isComplete() {
      return nextPosition === producedCharacters
    },
    emitRemainingLogprobs() {
      const rest = buffer?.rest() ?? []
      if (rest.length > 0) emit({ type: 'text', text: '', logprobs: rest })
    },
  }
}
