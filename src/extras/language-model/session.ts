/** The state of a `LanguageModel`: its conversation, and what can be done with it. */
import { unlessAborted } from '../../values/promises.ts'
import { generate, readConstraint } from './generate.ts'
import type { Endpoint } from './endpoint.ts'
import { quotaExceeded, toException } from './errors.ts'
import { assertSystemFirst, canonicalize, readImages, type ReadMessage } from './messages.ts'
import type { Sampling } from './options.ts'
import type {
  LanguageModelAnswer,
  LanguageModelMessageType,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
  LanguageModelSignalOptions,
  LanguageModelTool,
} from './types.ts'
import type { HistoryMessage } from './wire-messages.ts'

/** Everything that a new session needs. */
export interface SessionStart {
  endpoint: Endpoint
  contextWindow: number
  sampling: Sampling
  expectedTypes: readonly LanguageModelMessageType[]
  tools: readonly LanguageModelTool[]
  state: ConversationState
}

/** A conversation, and what can be done with it. `onOverflow` is called when it drops messages. */
export class Session {
  readonly #start: SessionStart
  readonly #onOverflow: () => void
  readonly #conversation: Conversation
  readonly #destruction = new AbortController()
  #lastOperation: Promise<unknown> = Promise.resolve()

  constructor(start: SessionStart, onOverflow: () => void) {
    this.#start = start
    this.#onOverflow = onOverflow
    this.#conversation = new Conversation(start)
  }

  get contextUsage(): number {
    return this.#conversation.state.usage
  }

  get contextWindow(): number {
    return this.#start.contextWindow
  }

  get sampling(): Sampling {
    return this.#start.sampling
  }

  /** Signal that the end of the session aborts. */
  get ended(): AbortSignal {
    return this.#destruction.signal
  }

  destroy(reason: unknown): void {
    this.#destruction.abort(reason)
  }

  prompt(
    input: LanguageModelPrompt,
    options: LanguageModelPromptOptions,
    onText: (text: string) => void,
  ): Promise<LanguageModelAnswer> {
    const { endpoint, tools, sampling, expectedTypes } = this.#start
    const ready = prepare(input, expectedTypes)
    return this.#runNext(options.signal, async (signal) => {
      const { messages, constraint } = await readOptions(ready, options)
      if (await this.#conversation.makeRoom(messages, true, signal)) this.#onOverflow()
      const { answer, added } = await generate({
        endpoint,
        messages: [...this.#conversation.messages, ...messages],
        constraint,
        tools,
        sampling: sampling.fields,
        onText: (text) => signal.aborted || onText(text),
        signal,
      })
      const kept = messages.filter(({ prefix }) => !prefix)
      await this.#conversation.append([...kept, ...added], signal)
      return answer
    })
  }

  append(input: LanguageModelPrompt, options: LanguageModelSignalOptions): Promise<undefined> {
    const ready = prepare(input, this.#start.expectedTypes)
    return this.#runNext(options.signal, async (signal) => {
      const messages = await ready
      // An empty list is an empty message for `prompt()`, and nothing here.
      if (input.length === 0) return undefined
      if (await this.#conversation.makeRoom(messages, false, signal)) this.#onOverflow()
      await this.#conversation.append(messages, signal)
      return undefined
    })
  }

  measure(input: LanguageModelPrompt, options: LanguageModelPromptOptions): Promise<number> {
    const ready = prepare(input, this.#start.expectedTypes)
    return this.#run(options.signal, async (signal) => {
      const { messages } = await readOptions(ready, options)
      return this.#start.endpoint.countTokens(messages, signal)
    })
  }

  /** Resolves with what another session with the same messages is created with. */
  copy({ signal }: LanguageModelSignalOptions): Promise<SessionStart> {
    return this.#run(signal, async () => ({
      ...this.#start,
      state: this.#conversation.state,
    }))
  }

  /** Runs an operation at once. Its signal ends with the session, or with that of the caller. */
  #run<T>(
    signal: AbortSignal | undefined,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const either = signal ? AbortSignal.any([this.ended, signal]) : this.ended
    if (either.aborted) return Promise.reject(either.reason as Error)
    const work = operation(either).catch((thrown: unknown) => {
      throw either.aborted ? either.reason : toException(thrown, 'UnknownError')
    })
    return unlessAborted(work, either)
  }

  /** Runs an operation after those before it. */
  #runNext<T>(
    signal: AbortSignal | undefined,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#run(signal, (either) => {
      const turn = this.#lastOperation.then(() => {
        either.throwIfAborted()
        return operation(either)
      })
      // The next operation does not wait for a server that is slow to notice the end.
      this.#lastOperation = unlessAborted(turn, either).catch(() => undefined)
      return turn
    })
  }
}

function prepare(input: LanguageModelPrompt, expectedTypes: readonly LanguageModelMessageType[]) {
  const ready = (async () => readImages(canonicalize(input, expectedTypes, false)))()
  // It may be that nobody waits for it, because the operation ended before.
  ready.catch(() => undefined)
  return ready
}

/** Resolves with the constraint, and with the messages, which have its hint. */
async function readOptions(
  ready: Promise<ReadMessage[]>,
  { responseConstraint, omitResponseConstraintInput }: LanguageModelPromptOptions,
) {
  const constraint = responseConstraint && readConstraint(responseConstraint)
  const messages = await ready
  if (!constraint || omitResponseConstraintInput) return { constraint, messages }
  const index = messages.findLastIndex(({ role }) => role === 'user')
  const asked = messages[index]
  const value = asked ? `\n\n${constraint.hint}` : constraint.hint
  const hint = { type: 'text', value } as const
  if (asked) {
    const content = [...asked.content, hint]
    return { constraint, messages: messages.with(index, { ...asked, content }) }
  }
  const added: ReadMessage = { role: 'user', content: [hint], prefix: false }
  // The text that the answer continues stays the last message.
  const at = messages.at(-1)?.prefix ? messages.length - 1 : messages.length
  return { constraint, messages: messages.toSpliced(at, 0, added) }
}

interface ConversationState {
  /** Messages that are never dropped. */
  initial: readonly HistoryMessage[]
  later: readonly HistoryMessage[]
  toolTokens: number
  usage: number
}

/** Largest number of tokens for which room is made before an answer, and its share of the window. */
const [MAX_ANSWER_ROOM, ANSWER_SHARE] = [512, 1 / 8] as const

/** The messages of a session, and which of them still fit into the context window. */
class Conversation {
  readonly #endpoint: Endpoint
  readonly #window: number
  /** It never changes; a change makes a new one, so that other sessions can have it, too. */
  state: ConversationState

  constructor({ endpoint, contextWindow, state }: SessionStart) {
    this.#endpoint = endpoint
    this.#window = contextWindow
    this.state = state
  }

  get messages(): readonly HistoryMessage[] {
    return [...this.state.initial, ...this.state.later]
  }

  /**
   * Drops the oldest exchanges until the new messages fit, with an answer if there will be one.
   * Resolves with `true` if it dropped any. Rejects with `QuotaExceededError`, and drops nothing, if
   * the initial messages leave no space. Rejects with `TypeError` if a system message is not first.
   */
  async makeRoom(added: readonly HistoryMessage[], isAnswered: boolean, signal: AbortSignal) {
    const window = this.#window
    const { later } = this.state
    assertSystemFirst(added[0]?.role, this.messages.length > 0)
    const room = Math.min(MAX_ANSWER_ROOM, Math.floor(window * ANSWER_SHARE))
    const fits = (tokens: number): boolean => tokens + (isAnswered ? room : 0) <= window
    if (fits(await this.#count([...later, ...added], signal))) return false
    const least = await this.#count(added, signal)
    const most = isAnswered ? window - 1 : window
    if (least > most) throw quotaExceeded(Math.max(least, window + 1), window)
    const starts = exchangeStarts(later)
    if (starts.length === 0) return false
    // The fewest exchanges to drop: the tokens of the rest only get fewer.
    let [low, high] = [1, starts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const rest = later.slice(starts[middle] ?? later.length)
      if (fits(await this.#count([...rest, ...added], signal))) high = middle
      else low = middle + 1
    }
    await this.#replace(later.slice(starts[low] ?? later.length), signal)
    return true
  }

  append(added: readonly HistoryMessage[], signal: AbortSignal): Promise<void> {
    return this.#replace([...this.state.later, ...added], signal)
  }

  /** Replaces the messages after the initial ones, unless the signal aborts meanwhile. */
  async #replace(later: readonly HistoryMessage[], signal: AbortSignal): Promise<void> {
    const tokens = await this.#count(later, signal)
    signal.throwIfAborted()
    this.state = { ...this.state, later, usage: Math.min(this.#window, tokens) }
  }

  /** Counts the tokens of the tools, of the initial messages and of those that follow them. */
  async #count(following: readonly HistoryMessage[], signal: AbortSignal): Promise<number> {
    const { initial, toolTokens } = this.state
    return toolTokens + (await this.#endpoint.countTokens([...initial, ...following], signal))
  }
}

/** Returns where the exchanges begin: at the messages of the user that follow an answer. */
const exchangeStarts = (messages: readonly HistoryMessage[]) =>
  messages.flatMap(({ role }, index) => {
    const isStart = index === 0 || (role === 'user' && messages[index - 1]?.role === 'assistant')
    return isStart ? [index] : []
  })
