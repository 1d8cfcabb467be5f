/** Converts the text after the reasoning into events: text up to a stop sequence, and tool calls. */
import type { GenerationResult } from '../engine/engine.ts'
import type { FinishReason, GenerationEvent, GenerationRequest } from '../types/index.ts'
import type { GenerationPlan } from './plan.ts'
import type { TextWriter } from './text-writer.ts'
import { createCallId } from './tools/id.ts'
import { createToolParser, type ParsedPart } from './tools/parser.ts'

/** Reason why an answer is over. */
export interface Ending {
  reason: FinishReason
  stopSequence: string | null
}

interface Answer {
  /** Reason why the answer is over; `null` while it is not. */
  readonly ending: Ending | null
  /** Adds text that begins at this position, in characters of all that the engine produced. */
  push(text: string, position: number): void
  /** Ends the answer after all text. `inReasoning` is `true` if it ends within its reasoning. */
  end(reason: GenerationResult['reason'], inReasoning: boolean): Ending
}

/** Creates an answer that passes its text to `writer` and its calls to `emit`. */
export function createAnswer(
  tools: GenerationPlan['tools'],
  stop: GenerationRequest['stop'],
  writer: TextWriter,
  emit: (event: GenerationEvent) => void,
): Answer {
  const keepSpace = stop.some((text) => /\s/.test(text))
  const parser = tools && createToolParser({ ...tools, tools: tools.callable, keepSpace })
  /** Position of the answer's first character; `null` until it begins. */
  let start: number | null = null
  let callCount = 0
  let ending: Ending | null = null

  const addText = (text: string, position: number): void => {
    // The calls are the whole answer. Text after them would be made up.
    if (callCount > 0) {
      ending = { reason: 'tool_calls', stopSequence: null }
      return
    }
    const stopSequence = writer.write(text, position)
    if (stopSequence !== null) ending = { reason: 'stop_sequence', stopSequence }
  }

  const addPart = (part: ParsedPart): void => {
    if (ending) return
    switch (part.type) {
      case 'text':
        addText(part.text, (start ?? 0) + part.from)
        break
      case 'call':
        writer.flush()
        emit({ type: 'tool_call', index: callCount, id: createCallId(), name: part.name })
        callCount += 1
        break
      case 'arguments':
        emit({ type: 'tool_arguments', index: callCount - 1, text: part.text })
        break
      case 'called':
        if (tools && !tools.parallel) ending = { reason: 'tool_calls', stopSequence: null }
    }
  }

  return {
    get ending() {
      return ending
    },
    push(text, position) {
      if (text === '') return
      start ??= position
      if (parser) parser.push(text).forEach(addPart)
      else addPart({ type: 'text', text, from: position - start })
    },
    end(reason, inReasoning) {
      if (parser && !ending) parser.end(reason === 'length').forEach(addPart)
      if (ending) return ending
      writer.flush()
      if (start === null ? !inReasoning : writer.isComplete) writer.emitRemainingLogprobs()
      return {
        reason: reason === 'stop' && callCount > 0 ? 'tool_calls' : reason,
        stopSequence: null,
      }
    },
  }
}
