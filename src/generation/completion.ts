/** Converts the text pieces of an engine into the events of one answer. */
import type { GenerationResult, TextChunk, GenerationUpdate } from '../engine/engine.ts'
import type { FinishReason, GenerationEvent, GenerationRequest, Usage } from '../types/index.ts'
import { createLogprobBuffer } from './logprobs.ts'
import type { GenerationPlan } from './plan.ts'
import { createReasoningSplitter } from './reasoning.ts'
import { createStopMatcher } from './stop-sequences.ts'
import { createCallId } from './tools/id.ts'
import { createToolParser, type ParsedPart } from './tools/parser.ts'

interface Completion {
  /** Returns the events of a piece. The last event is `finish` if the answer is over. */
  push(piece: TextChunk): { events: GenerationEvent[]; steer?: GenerationUpdate }
  /** Returns the remaining events once the engine has ended. The last event is `finish`. */
  end(ending: GenerationResult): GenerationEvent[]
}

/** Creates the answer to a request. `started` holds the token counts of the prompt. */
export function createCompletion(
  plan: GenerationPlan,
  { stop, logprobs }: Pick<GenerationRequest, 'stop' | 'logprobs'>,
  started: Pick<Usage, 'promptTokens' | 'cachedTokens'>,
): Completion {
  const { tools, reasoning } = plan
  const stopMatcher = createStopMatcher(stop)
  const buffer = logprobs === undefined ? null : createLogprobBuffer()
  const splitter = reasoning && createReasoningSplitter(reasoning.tags, reasoning.isOpen)
  const keepSpace = stop.some((text) => /\s/.test(text))
  const parser = tools && createToolParser({ ...tools, tools: tools.callable, keepSpace })

  let events: GenerationEvent[] = []
  /** Number of characters that the engine has produced. */
  let producedCharacters = 0
  /** Number of characters before the answer's text; `null` until that text begins. */
  let textStart: number | null = null
  /**
   * Position of the first character that `stopMatcher` holds back or, if it holds none, returns
   * next.
   */
  let textPosition = 0
  let heldCharacters = 0
  let callCount = 0
  let tokens = 0
  const reasoningSeen = { tokens: 0, hasText: false }
  let isClosingReasoning = false
  let isConstraintRemoved = !plan.removesConstraint
  let finished: { reason: FinishReason; stopSequence: string | null } | null = null

  const emitText = (text: string): void => {
    if (text === '') return
    const tokenLogprobs = buffer?.take(textPosition, textPosition + text.length)
    textPosition += text.length
    heldCharacters = Math.max(0, heldCharacters - text.length)
    events.push({ type: 'text', text, ...(tokenLogprobs && { logprobs: tokenLogprobs }) })
  }
  const addText = (text: string, from: number): void => {
    if (heldCharacters === 0) textPosition = from
    heldCharacters += text.length
    const { text: releasedText, match } = stopMatcher.push(text)
    emitText(releasedText)
    if (match !== null)
      finished = { reason: callCount > 0 ? 'tool_calls' : 'stop_sequence', stopSequence: match }
  }
  const flush = (): void => {
    emitText(stopMatcher.flush())
    heldCharacters = 0
  }

  /** Emits the logprobs of tokens without text, which end within an incomplete character. */
  const emitRemainingLogprobs = (): void => {
    if (textStart === null ? splitter?.isOpen : textPosition < producedCharacters) return
    const tokenLogprobs = buffer?.rest() ?? []
    if (tokenLogprobs.length > 0) events.push({ type: 'text', text: '', logprobs: tokenLogprobs })
  }

  const addPart = (part: ParsedPart): void => {
    if (finished) return
    switch (part.type) {
      case 'text':
        // The calls are the whole answer. Text after them would be made up.
        if (callCount > 0) finished = { reason: 'tool_calls', stopSequence: null }
        else addText(part.text, (textStart ?? 0) + part.from)
        break
      case 'call':
        flush()
        events.push({ type: 'tool_call', index: callCount, id: createCallId(), name: part.name })
        callCount += 1
        break
      case 'arguments': {
        const last = events.at(-1)
        if (last?.type === 'tool_arguments') last.text += part.text
        else events.push({ type: 'tool_arguments', index: callCount - 1, text: part.text })
        break
      }
      case 'called':
        if (tools && !tools.parallel) finished = { reason: 'tool_calls', stopSequence: null }
    }
  }

  const addSplit = (split: { reasoning: string; text: string }): void => {
    if (split.reasoning !== '') {
      reasoningSeen.hasText = true
      events.push({ type: 'reasoning', text: split.reasoning })
    }
    if (split.text === '') return
    textStart ??= producedCharacters - split.text.length
    if (parser) parser.push(split.text).forEach(addPart)
    else
      addPart({
        type: 'text',
        text: split.text,
        from: producedCharacters - split.text.length - textStart,
      })
  }

  const finish = (completionTokens: number): GenerationEvent[] => {
    const { reason, stopSequence } = finished ?? { reason: 'stop', stopSequence: null }
    // The marks of an empty block do not count as reasoning.
    const reasoningTokens = reasoningSeen.hasText ? reasoningSeen.tokens : 0
    const usage: Usage = { ...started, completionTokens, reasoningTokens }
    return [...events, { type: 'finish', reason, stopSequence, usage }]
  }

  const push: Completion['push'] = (piece) => {
    events = []
    tokens += piece.tokens
    producedCharacters += piece.text.length
    buffer?.add(piece)
    const inside = splitter?.isOpen === true
    addSplit(splitter ? splitter.push(piece.text) : { reasoning: '', text: piece.text })
    // The budget limits the model's own reasoning. The closing mark that we append does not count.
    if ((inside || splitter?.isOpen) && !isClosingReasoning) reasoningSeen.tokens += piece.tokens
    if (finished) return { events: finish(tokens) }

    if (producedCharacters < plan.forcedCharacters) return { events }
    let steer: GenerationUpdate | undefined
    if (!isConstraintRemoved) {
      isConstraintRemoved = true
      steer = { constraint: null }
    }
    if (
      reasoning &&
      splitter?.isOpen &&
      !isClosingReasoning &&
      reasoningSeen.tokens >= reasoning.budget
    ) {
      isClosingReasoning = true
      steer = { ...steer, append: `\n${reasoning.tags.close}\n\n` }
    }
    return { events, steer }
  }

  const end: Completion['end'] = ({ reason, completionTokens }) => {
    events = []
    if (splitter) addSplit(splitter.end())
    if (parser && !finished) parser.end(reason === 'length').forEach(addPart)
    if (!finished) {
      flush()
      emitRemainingLogprobs()
      finished = {
        reason: reason === 'stop' && callCount > 0 ? 'tool_calls' : reason,
        stopSequence: null,
      }
    }
    return finish(completionTokens)
  }
  return { push, end }
}
