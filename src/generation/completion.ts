/** Converts the text pieces of an engine into the events of one answer. */
import type { GenerationResult, TextChunk, GenerationUpdate } from '../engine/engine.ts'
import type { GenerationEvent, GenerationRequest, Usage } from '../types/index.ts'
import { createAnswer, type Ending } from './answer.ts'
import type { GenerationPlan } from './plan.ts'
import type { Split } from './reasoning.ts'
import { createBudgetedReasoning } from './reasoning-budget.ts'
import { createTextWriter } from './text-writer.ts'

interface Completion {
  /** Returns the events of a piece. The last event is `finish` if the answer is over. */
  push(piece: TextChunk): { events: GenerationEvent[]; steer?: GenerationUpdate }
  /** Returns the remaining events once the engine has ended. The last event is `finish`. */
  end(ending: GenerationResult): GenerationEvent[]
}

/** Creates the answer to a request. `started` holds the token counts of the prompt. */
export function createCompletion(
  plan: GenerationPlan,
  request: Pick<GenerationRequest, 'stop' | 'logprobs'>,
  started: Pick<Usage, 'promptTokens' | 'cachedTokens'>,
): Completion {
  let events: GenerationEvent[] = []
  let tokens = 0
  let isConstraintRemoved = !plan.removesConstraint

  const emit = (event: GenerationEvent): void => {
    const last = events.at(-1)
    if (event.type === 'tool_arguments' && last?.type === event.type) last.text += event.text
    else events.push(event)
  }
  const writer = createTextWriter(request, emit)
  const answer = createAnswer(plan.tools, request.stop, writer, emit)
  const reasoning = plan.reasoning && createBudgetedReasoning(plan.reasoning)

  const add = (split: Split): void => {
    if (split.reasoning !== '') emit({ type: 'reasoning', text: split.reasoning })
    answer.push(split.text, writer.producedCharacters - split.text.length)
  }

  const finish = (ending: Ending, completionTokens: number): GenerationEvent[] => {
    const usage = { ...started, completionTokens, reasoningTokens: reasoning?.tokens ?? 0 }
    return [...events, { type: 'finish', ...ending, usage }]
  }

  /** Returns what the engine does differently from the next token on. */
  const takeUpdate = (): GenerationUpdate | undefined => {
    if (writer.producedCharacters < plan.forcedCharacters) return undefined
    const update = isConstraintRemoved ? undefined : { constraint: null }
    isConstraintRemoved = true
    const append = reasoning?.takeClosing()
    return append === undefined ? update : { ...update, append }
  }

  return {
    push(piece) {
      events = []
      tokens += piece.tokens
      writer.receive(piece)
      add(reasoning ? reasoning.push(piece) : { reasoning: '', text: piece.text })
      if (answer.ending) return { events: finish(answer.ending, tokens) }
      return { events, steer: takeUpdate() }
    },
    end({ reason, completionTokens }) {
      events = []
      if (reasoning) add(reasoning.end())
      return finish(answer.end(reason, reasoning?.isOpen === true), completionTokens)
    },
  }
}
