/** Converts the text pieces of an engine into the events of one answer. */
import type { GenerationResult, TextChunk, GenerationUpdate } from '../engine/engine.ts'
import type { FinishReason, GenerationEvent, GenerationRequest, Usage } from '../types/index.ts'
import { createLogprobBuffer } from './logprobs.ts'
import type { Plan } from './plan.ts'
import { createSplitter } from './reasoning.ts'
import { createStops } from './stops.ts'
import { createCallId } from './tools/id.ts'
import { createToolParser, type Part } from './tools/parser.ts'

export interface Answer {
  /** Returns the events of a piece. The last event is `finish` if the answer is over. */
  push(piece: TextChunk): { events: GenerationEvent[]; steer?: GenerationUpdate }
  /** Returns the remaining events once the engine has ended. The last event is `finish`. */
  end(ending: GenerationResult): GenerationEvent[]
}

/** Creates the answer to a request. `started` holds the token counts of the prompt. */
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
  /** Number of characters that the engine has produced. */
  let written = 0
  /** Number of characters before the answer's text; `null` until that text begins. */
  let before: number | null = null
  /** Position of the first character that `stops` holds back or, if it holds none, returns next. */
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

  /** Emits the logprobs of tokens without text, which end within an incomplete character. */
  const tellRest = (): void => {
    if (before === null ? splitter?.inside : place < written) return
    const told = buffer?.rest() ?? []
    if (told.length > 0) events.push({ type: 'text', text: '', logprobs: told })
  }

  const takePart = (part: Part): void => {
    if (over) return
    switch (part.type) {
      case 'text':
        // The calls are the whole answer. Text after them would be made up.
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
    // The marks of an empty block do not count as reasoning.
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
    // The budget limits the model's own reasoning. The closing mark that we append does not count.
    if ((inside || splitter?.inside) && !closing) reasoned.tokens += piece.tokens
    if (over) return { events: finish(tokens) }

    if (written < plan.given) return { events }
    let steer: GenerationUpdate | undefined
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
