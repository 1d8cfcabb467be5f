/** Pieces of an engine's text as the events of one answer. */
import type { Ending, Piece, Steer } from '../engine/engine.ts'
import type { FinishReason, GenerationEvent, GenerationRequest, Usage } from '../types/index.ts'
import { createLogprobBuffer } from './logprobs.ts'
import type { Plan } from './plan.ts'
import { createSplitter } from './reasoning.ts'
import { createStops } from './stops.ts'
import { createCallId } from './tools/id.ts'
import { createToolParser, type Part } from './tools/parser.ts'

export interface Answer {
  /** What a piece says; the last event is `finish` where no more is wanted. */
  push(piece: Piece): { events: GenerationEvent[]; steer?: Steer }
  /** What is left when the engine has ended; the last event is `finish`. */
  end(ending: Ending): GenerationEvent[]
}

/** `started` is what is known of the prompt. */
export function createAnswer(
  plan: Plan,
  { stop, logprobs }: Pick<GenerationRequest, 'stop' | 'logprobs'>,
  started: Pick<Usage, 'promptTokens' | 'cachedTokens'>,
): Answer {
  const { tools, reasoning } = plan
  const stops = createStops(stop)
  const buffer = logprobs === undefined ? null : createLogprobBuffer()
  const splitter = reasoning && createSplitter(reasoning.marks, reasoning.inside)
  const keepSpace = stop.some((text) => /\s/.test(text))
  const parser = tools && createToolParser({ ...tools, tools: tools.callable, keepSpace })

  let events: GenerationEvent[] = []
  /** Characters written, and how many of them came before the text that was split off. */
  let written = 0
  let before: number | null = null
  /** Place of the first character that stops hold back or, if none, tell next. */
  let place = 0
  let held = 0
  let calls = 0
  let tokens = 0
  const reasoned = { tokens: 0, told: false }
  let closing = false
  let lifted = !plan.lift
  let over: { reason: FinishReason; stopSequence: string | null } | null = null

  const tellText = (text: string): void => {
    if (text === '') return
    const told = buffer?.take(place, place + text.length)
    place += text.length
    held = Math.max(0, held - text.length)
    events.push({ type: 'text', text, ...(told && { logprobs: told }) })
  }
  const takeText = (text: string, from: number): void => {
    if (held === 0) place = from
    held += text.length
    const { text: certain, match } = stops.push(text)
    tellText(certain)
    if (match !== null)
      over = { reason: calls > 0 ? 'tool_calls' : 'stop_sequence', stopSequence: match }
  }
  const flush = (): void => {
    tellText(stops.flush())
    held = 0
  }

  /** Tokens of a character that the end cuts have no text, but how probable they were is told. */
  const tellRest = (): void => {
    if (before === null ? splitter?.inside : place < written) return
    const told = buffer?.rest() ?? []
    if (told.length > 0) events.push({ type: 'text', text: '', logprobs: told })
  }

  const takePart = (part: Part): void => {
    if (over) return
    switch (part.type) {
      case 'text':
        // The answer was the calls: what a model goes on with it makes up, their results for one.
        if (calls > 0) over = { reason: 'tool_calls', stopSequence: null }
        else takeText(part.text, (before ?? 0) + part.from)
        break
      case 'call':
        flush()
        events.push({ type: 'tool_call', index: calls, id: createCallId(), name: part.name })
        calls += 1
        break
      case 'arguments': {
        const last = events.at(-1)
        if (last?.type === 'tool_arguments') last.text += part.text
        else events.push({ type: 'tool_arguments', index: calls - 1, text: part.text })
        break
      }
      case 'called':
        if (tools && !tools.parallel) over = { reason: 'tool_calls', stopSequence: null }
    }
  }

  const take = (split: { reasoning: string; text: string }): void => {
    if (split.reasoning !== '') {
      reasoned.told = true
      events.push({ type: 'reasoning', text: split.reasoning })
    }
    if (split.text === '') return
    before ??= written - split.text.length
    if (parser) parser.push(split.text).forEach(takePart)
    else takePart({ type: 'text', text: split.text, from: written - split.text.length - before })
  }

  const finish = (completionTokens: number): GenerationEvent[] => {
    const { reason, stopSequence } = over ?? { reason: 'stop', stopSequence: null }
    // The marks of an empty block are no reasoning.
    const reasoningTokens = reasoned.told ? reasoned.tokens : 0
    const usage: Usage = { ...started, completionTokens, reasoningTokens }
    return [...events, { type: 'finish', reason, stopSequence, usage }]
  }

  const push: Answer['push'] = (piece) => {
    events = []
    tokens += piece.tokens
    written += piece.text.length
    buffer?.add(piece)
    const inside = splitter?.inside === true
    take(splitter ? splitter.push(piece.text) : { reasoning: '', text: piece.text })
    // What closes it by force is ours, not the model's: a budget is for what it thinks.
    if ((inside || splitter?.inside) && !closing) reasoned.tokens += piece.tokens
    if (over) return { events: finish(tokens) }

    if (written < plan.given) return { events }
    let steer: Steer | undefined
    if (!lifted) {
      lifted = true
      steer = { constraint: null }
    }
    if (reasoning && splitter?.inside && !closing && reasoned.tokens >= reasoning.budget) {
      closing = true
      steer = { ...steer, append: `\n${reasoning.marks.close}\n\n` }
    }
    return { events, steer }
  }

  const end: Answer['end'] = ({ reason, completionTokens }) => {
    events = []
    if (splitter) take(splitter.end())
    if (parser && !over) parser.end(reason === 'length').forEach(takePart)
    if (!over) {
      flush()
      tellRest()
      over = { reason: reason === 'stop' && calls > 0 ? 'tool_calls' : reason, stopSequence: null }
    }
    return finish(completionTokens)
  }
  return { push, end }
}
