/** Converts the text after the reasoning into events: text up to a stop sequence, and tool calls. */
import type { GenerationResult } from '../engine/engine.ts'
import type { FinishReason, GenerationEvent, GenerationRequest } from '../types/index.ts'
import { createCallMarker } from '../values/custom-tools.ts'
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
  const mark = createCallMarker(tools?.callable ?? [])
  const calls = createCallWriter((event) => emit(mark(event)))
  let ending: Ending | null = null

  const addText = (text: string, position: number): void => {
    // The calls are the whole answer. Text after them would be made up.
    if (calls.count > 0) {
      ending = { reason: 'tool_calls', stopSequence: null }
      return
    }
    const stopSequence = writer.write(text, position)
    if (stopSequence !== null) ending = { reason: 'stop_sequence', stopSequence }
  }

  const addPart = (part: ParsedPart): void => {
    if (ending) return
    if (part.type === 'text') return addText(part.text, (start ?? 0) + part.from)
    if (part.type === 'call') writer.flush()
    if (part.type !== 'called') return calls.add(part)
    if (tools && !tools.parallel) ending = { reason: 'tool_calls', stopSequence: null }
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
        reason: reason === 'stop' && calls.count > 0 ? 'tool_calls' : reason,
        stopSequence: null,
      }
    },
  }
}

type CallPart = Extract<ParsedPart, { type: 'call' | 'arguments' }>

type CallEvent = Extract<GenerationEvent, { type: 'tool_call' | 'tool_arguments' }>

/** Returns a writer that emits tool calls, with their indexes and ids. */
function createCallWriter(emit: (event: CallEvent) => void) {
  let count = 0
  return {
    get count() {
      return count
    },
    add(part: CallPart): void {
      if (part.type === 'arguments')
        return emit({ type: 'tool_arguments', index: count - 1, text: part.text })
      emit({ type: 'tool_call', index: count, id: createCallId(), name: part.name })
      count += 1
    },
  }
}
