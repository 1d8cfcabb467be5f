/** Converts the text pieces of an engine into the events of one answer. */
import type { GenerationResult, GenerationUpdate, TextChunk } from '../engine/engine.ts'
import type {
  FinishReason,
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  Usage,
} from '../types/index.ts'
import { createCallMarker } from '../values/custom-tools.ts'
import type { GenerationPlan } from './plan.ts'
import { createReasoningSplitter, type Split } from './reasoning.ts'
import { createStopMatcher } from './stop-sequences.ts'
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

// Converts the text after the reasoning into events: text up to a stop sequence, and tool calls.

/** Reason why an answer is over. */
interface Ending {
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
function createAnswer(
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

// Emits the text of an answer up to the first stop sequence, with the logprobs of its tokens.

interface TextWriter {
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

function createTextWriter(
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

// Buffers the logprobs of tokens until the text of those tokens is emitted.

interface LogprobBuffer {
  add(piece: TextChunk): void
  /**
   * Returns the tokens of the text between two positions, in characters from the beginning. A token
   * is returned once, with the first of its characters that is emitted. Earlier tokens are dropped.
   */
  take(from: number, to: number): TokenLogprob[]
  /** Returns the tokens after all text, which end within an incomplete character. */
  rest(): TokenLogprob[]
}

export function createLogprobBuffer(): LogprobBuffer {
  let length = 0
  let buffered: { from: number; to: number; token: TokenLogprob }[] = []

  const add: LogprobBuffer['add'] = ({ text, logprobs = [] }) => {
    // Tokens that end within a character have no own text. Then the piece is one unit.
    const isSplittable = logprobs.map((token) => token.text).join('') === text
    let from = length
    for (const token of logprobs) {
      const to = isSplittable ? from + token.text.length : length + text.length
      buffered.push({ from, to, token })
      if (isSplittable) from = to
    }
    length += text.length
  }

  const take: LogprobBuffer['take'] = (from, to) => {
    const ready = buffered.filter((entry) => entry.from < to)
    buffered = buffered.slice(ready.length)
    return ready.filter((entry) => entry.to > from || entry.from >= from).map(({ token }) => token)
  }
  const rest: LogprobBuffer['rest'] = () =>
    buffered.filter(({ from }) => from === length).map(({ token }) => token)
  return { add, take, rest }
}

// Splits the reasoning off an answer, counts its tokens and enforces its budget.

interface BudgetedReasoning {
  /** Number of tokens of reasoning. The marks of an empty block do not count. */
  readonly tokens: number
  /** `true` while the reasoning is open. */
  readonly isOpen: boolean
  push(piece: TextChunk): Split
  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split
  /** Returns the text that closes the reasoning, once, when the budget is used up. */
  takeClosing(): string | undefined
}

function createBudgetedReasoning({
  tags,
  isOpen,
  budget,
}: NonNullable<GenerationPlan['reasoning']>): BudgetedReasoning {
  const splitter = createReasoningSplitter(tags, isOpen)
  let tokens = 0
  let hasText = false
  let isClosing = false

  const noteText = (split: Split): Split => {
    hasText ||= split.reasoning !== ''
    return split
  }

  return {
    get tokens() {
      return hasText ? tokens : 0
    },
    get isOpen() {
      return splitter.isOpen
    },
    push(piece) {
      const wasOpen = splitter.isOpen
      const split = noteText(splitter.push(piece.text))
      // The budget limits the model's own reasoning. The closing mark that we append does not count.
      if ((wasOpen || splitter.isOpen) && !isClosing) tokens += piece.tokens
      return split
    },
    end: () => noteText(splitter.end()),
    takeClosing() {
      if (!splitter.isOpen || isClosing || tokens < budget) return undefined
      isClosing = true
      return `\n${tags.close}\n\n`
    },
  }
}

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns a new unique id: `call_` and 24 letters and digits. */
function createCallId(): string {
  let id = 'call_'
  // Bytes from `most` on are skipped, so that all 62 letters and digits are equally likely.
  const most = 256 - (256 % LETTERS.length)
  while (id.length < 29) {
    for (const byte of crypto.getRandomValues(new Uint8Array(32))) {
      if (byte < most && id.length < 29) id += LETTERS.charAt(byte % LETTERS.length)
    }
  }
  return id
}
