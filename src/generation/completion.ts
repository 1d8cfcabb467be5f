/** Converts the text pieces of an engine into the events of one answer. */
import type { GenerationResult, GenerationUpdate, TextChunk } from '../engine/engine.ts'
import type {
  DraftCounts,
  FinishReason,
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  Usage,
} from '../types/index.ts'
import { createCallMarker } from '../values/custom-tools.ts'
import type { GenerationPlan } from './plan.ts'
import { closingText, ReasoningSplitter, type ReasoningTags, type Split } from './reasoning.ts'
import { StopMatcher } from './stop-sequences.ts'
import { ToolParser } from './tools/parser.ts'
import type { ParsedPart } from './tools/reader.ts'

/** The answer to one request. */
export class Completion {
  readonly #plan: GenerationPlan
  readonly #started: Pick<Usage, 'promptTokens' | 'cachedTokens'>
  readonly #writer: TextWriter
  readonly #answer: Answer
  readonly #reasoning: BudgetedReasoning | null
  #events: GenerationEvent[] = []
  #tokens = 0
  #drafts: DraftCounts | undefined
  #isConstraintRemoved: boolean

  /** @param started Token counts of the prompt. */
  constructor(
    plan: GenerationPlan,
    request: Pick<GenerationRequest, 'stop' | 'logprobs'>,
    started: Pick<Usage, 'promptTokens' | 'cachedTokens'>,
  ) {
    const emit = (event: GenerationEvent) => this.#emit(event)
    this.#plan = plan
    this.#started = started
    this.#writer = new TextWriter(request, emit)
    this.#answer = new Answer(plan.tools, request.stop, this.#writer, emit)
    this.#reasoning = plan.reasoning && new BudgetedReasoning(plan.reasoning)
    this.#isConstraintRemoved = !plan.removesConstraint
  }

  /** Returns the events of a piece. The last event is `finish` if the answer is over. */
  push(piece: TextChunk): { events: GenerationEvent[]; steer?: GenerationUpdate | undefined } {
    this.#events = []
    this.#tokens += piece.tokens
    this.#drafts = piece.drafts
    this.#writer.receive(piece)
    this.#add(this.#reasoning ? this.#reasoning.push(piece) : { reasoning: '', text: piece.text })
    const { ending } = this.#answer
    if (ending) return { events: this.#finish(ending, this.#tokens) }
    return { events: this.#events, steer: this.#takeUpdate() }
  }

  /** Returns the remaining events once the engine has ended. The last event is `finish`. */
  end({ reason, completionTokens, drafts }: GenerationResult): GenerationEvent[] {
    this.#events = []
    this.#drafts = drafts
    if (this.#reasoning) this.#add(this.#reasoning.end())
    const ending = this.#answer.end(reason, this.#reasoning?.isOpen === true)
    return this.#finish(ending, completionTokens)
  }

  #emit(event: GenerationEvent): void {
    const last = this.#events.at(-1)
    if (event.type === 'tool_arguments' && last?.type === event.type) last.text += event.text
    else this.#events.push(event)
  }

  #add({ reasoning, text }: Split): void {
    if (reasoning !== '') this.#emit({ type: 'reasoning', text: reasoning })
    this.#answer.push(text, this.#writer.producedCharacters - text.length)
  }

  #finish(ending: Ending, completionTokens: number): GenerationEvent[] {
    const reasoningTokens = this.#reasoning?.tokens ?? 0
    const drafts = this.#drafts && { drafts: this.#drafts }
    const usage = { ...this.#started, completionTokens, reasoningTokens, ...drafts }
    return [...this.#events, { type: 'finish', ...ending, usage }]
  }

  /** Returns what the engine does differently from the next token on. */
  #takeUpdate(): GenerationUpdate | undefined {
    if (this.#writer.producedCharacters < this.#plan.forcedCharacters) return undefined
    const update = this.#isConstraintRemoved ? undefined : { constraint: null }
    this.#isConstraintRemoved = true
    const append = this.#reasoning?.takeClosing()
    return append === undefined ? update : { ...update, append }
  }
}

/** Reason why an answer is over. */
interface Ending {
  reason: FinishReason
  stopSequence: string | null
}

/** Converts the text after the reasoning into text up to a stop sequence, and tool calls. */
class Answer {
  /** Reason why the answer is over; `null` while it is not. */
  ending: Ending | null = null
  readonly #writer: TextWriter
  readonly #parser: ToolParser | null
  readonly #isParallel: boolean
  readonly #emitCall: (event: CallEvent) => void
  #calls = 0
  /** Position of the answer's first character; `null` until it begins. */
  #start: number | null = null

  constructor(
    tools: GenerationPlan['tools'],
    stop: GenerationRequest['stop'],
    writer: TextWriter,
    emit: (event: GenerationEvent) => void,
  ) {
    const keepSpace = stop.some((text) => /\s/.test(text))
    const mark = createCallMarker(tools?.callable ?? [])
    this.#parser = tools && new ToolParser({ ...tools, tools: tools.callable, keepSpace })
    this.#isParallel = tools?.parallel ?? true
    this.#writer = writer
    this.#emitCall = (event) => emit(mark(event))
  }

  /** Adds text that begins at this position, in characters of all that the engine produced. */
  push(text: string, position: number): void {
    if (text === '') return
    this.#start ??= position
    if (this.#parser) this.#addParts(this.#parser.push(text))
    else this.#addText(text, position)
  }

  /** Ends the answer after all text. `inReasoning` is `true` if it ends within its reasoning. */
  end(reason: GenerationResult['reason'], inReasoning: boolean): Ending {
    if (this.#parser && !this.ending) this.#addParts(this.#parser.end(reason === 'length'))
    if (this.ending) return this.ending
    this.#writer.flush()
    if (this.#start === null ? !inReasoning : this.#writer.isComplete)
      this.#writer.emitRemainingLogprobs()
    const isCalled = reason === 'stop' && this.#calls > 0
    return { reason: isCalled ? 'tool_calls' : reason, stopSequence: null }
  }

  #addParts(parts: readonly ParsedPart[]): void {
    for (const part of parts) {
      if (this.ending) return
      switch (part.type) {
        case 'text':
          this.#addText(part.text, (this.#start ?? 0) + part.from)
          break
        case 'call':
          this.#writer.flush()
          this.#emitCall({ ...part, type: 'tool_call', index: this.#calls, id: createCallId() })
          this.#calls += 1
          break
        case 'arguments':
          this.#emitCall({ ...part, type: 'tool_arguments', index: this.#calls - 1 })
          break
        case 'called':
          if (!this.#isParallel) this.ending = { reason: 'tool_calls', stopSequence: null }
      }
    }
  }

  #addText(text: string, position: number): void {
    if (this.ending) return
    // The calls are the whole answer. Text after them would be made up.
    if (this.#calls > 0) {
      this.ending = { reason: 'tool_calls', stopSequence: null }
      return
    }
    const stopSequence = this.#writer.write(text, position)
    if (stopSequence !== null) this.ending = { reason: 'stop_sequence', stopSequence }
  }
}

type CallEvent = Extract<GenerationEvent, { type: 'tool_call' | 'tool_arguments' }>

/** Emits the text of an answer up to the first stop sequence, with the logprobs of its tokens. */
class TextWriter {
  /** Number of characters that the engine has produced, reasoning and calls included. */
  producedCharacters = 0
  readonly #emit: (event: GenerationEvent) => void
  readonly #stopMatcher: StopMatcher
  readonly #buffer: LogprobBuffer | null
  /** Position of the first character that is held back or, if none is, that is emitted next. */
  #nextPosition = 0
  #heldCharacters = 0

  constructor(
    { stop, logprobs }: Pick<GenerationRequest, 'stop' | 'logprobs'>,
    emit: (event: GenerationEvent) => void,
  ) {
    this.#emit = emit
    this.#stopMatcher = new StopMatcher(stop)
    this.#buffer = logprobs === undefined ? null : new LogprobBuffer()
  }

  /** `true` if all that the engine produced is emitted. */
  get isComplete(): boolean {
    return this.#nextPosition === this.producedCharacters
  }

  /** Receives a piece of the engine before the text in it is written. */
  receive(piece: TextChunk): void {
    this.producedCharacters += piece.text.length
    this.#buffer?.add(piece)
  }

  /**
   * Writes text that begins at this position, in characters of all that the engine produced.
   * Returns the stop sequence that was found, or `null`.
   */
  write(text: string, position: number): string | null {
    if (this.#heldCharacters === 0) this.#nextPosition = position
    this.#heldCharacters += text.length
    const { text: releasedText, match } = this.#stopMatcher.push(text)
    this.#emitText(releasedText)
    return match
  }

  /** Emits the text that was held back as the possible beginning of a stop sequence. */
  flush(): void {
    this.#emitText(this.#stopMatcher.flush())
  }

  /** Emits the logprobs of tokens without text, which end within an incomplete character. */
  emitRemainingLogprobs(): void {
    const rest = this.#buffer?.rest() ?? []
    if (rest.length > 0) this.#emit({ type: 'text', text: '', logprobs: rest })
  }

  #emitText(text: string): void {
    if (text === '') return
    const logprobs = this.#buffer?.take(this.#nextPosition, this.#nextPosition + text.length)
    this.#nextPosition += text.length
    this.#heldCharacters -= text.length
    this.#emit({ type: 'text', text, ...(logprobs && { logprobs }) })
  }
}

/** Returns what a token adds to the text. A special token has a name, but adds no bytes. */
const textOf = ({ text, bytes }: TokenLogprob): string => (bytes.length > 0 ? text : '')

/** Buffers the logprobs of tokens until the text of those tokens is emitted. */
export class LogprobBuffer {
  #length = 0
  #buffered: { from: number; to: number; token: TokenLogprob }[] = []

  add({ text, logprobs = [] }: TextChunk): void {
    // Tokens that end within a character have no own text. Then the piece is one unit.
    const isSplittable = logprobs.map(textOf).join('') === text
    let from = this.#length
    for (const token of logprobs) {
      const to = isSplittable ? from + textOf(token).length : this.#length + text.length
      this.#buffered.push({ from, to, token })
      if (isSplittable) from = to
    }
    this.#length += text.length
  }

  /**
   * Returns the tokens of the text between two positions, in characters from the beginning. A token
   * is returned once, with the first of its characters that is emitted. Earlier tokens are dropped.
   */
  take(from: number, to: number): TokenLogprob[] {
    const ready = this.#buffered.filter((entry) => entry.from < to)
    this.#buffered = this.#buffered.slice(ready.length)
    return ready.filter((entry) => entry.to > from || entry.from >= from).map(({ token }) => token)
  }

  /** Returns the tokens after all text, which end within an incomplete character. */
  rest(): TokenLogprob[] {
    return this.#buffered.filter(({ from }) => from === this.#length).map(({ token }) => token)
  }
}

/** Splits the reasoning off an answer, counts its tokens and enforces its budget. */
class BudgetedReasoning {
  readonly #tags: ReasoningTags | null
  readonly #budget: number
  readonly #splitter: ReasoningSplitter
  #tokens = 0
  #hasText = false
  #isClosing = false

  constructor({ tags, frame, opened, budget }: NonNullable<GenerationPlan['reasoning']>) {
    this.#tags = tags
    this.#budget = budget
    this.#splitter = new ReasoningSplitter(tags, opened, frame)
  }

  /** Number of tokens of reasoning. The marks of an empty block do not count. */
  get tokens(): number {
    return this.#hasText ? this.#tokens : 0
  }

  get isOpen(): boolean {
    return this.#splitter.isOpen
  }

  push(piece: TextChunk): Split {
    const wasOpen = this.isOpen
    const split = this.#noteText(this.#splitter.push(piece.text))
    // The budget limits the model's own reasoning. The closing mark that we append does not count.
    if ((wasOpen || this.isOpen) && !this.#isClosing) this.#tokens += piece.tokens
    return split
  }

  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split {
    return this.#noteText(this.#splitter.end())
  }

  /** Returns the text that closes the reasoning, once, when the budget is used up. */
  takeClosing(): string | undefined {
    if (!this.#tags || !this.isOpen || this.#isClosing || this.#tokens < this.#budget)
      return undefined
    this.#isClosing = true
    return closingText(this.#tags)
  }

  #noteText(split: Split): Split {
    this.#hasText ||= split.reasoning !== ''
    return split
  }
}

/** Returns a new unique id: `call_` and 24 letters and digits. */
const createCallId = (): string => `call_${crypto.randomUUID().replaceAll('-', '').slice(-24)}`
