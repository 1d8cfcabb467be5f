/** The state of a `LanguageModel`: its conversation, and what can be done with it. */
import { unlessAborted } from '../../values/promises.ts'
import { generate, readConstraint, type ResponseConstraint } from './generate.ts'
import { countTokens, type Endpoint } from './endpoint.ts'
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

export type Session = ReturnType<typeof createSession>

/** Creates a session. `onOverflow` is called when it drops messages. */
export function createSession(start: SessionStart, onOverflow: () => void) {
  const { endpoint, contextWindow, sampling, expectedTypes, tools } = start
  const conversation = createConversation(endpoint, contextWindow, start.state)
  const destruction = new AbortController()
  const operations = createOperations(destruction.signal)

  return {
    get contextUsage() {
      return conversation.usage
    },
    contextWindow,
    sampling,
    /** Signal that the end of the session aborts. */
    ended: destruction.signal,
    destroy: (reason: unknown) => destruction.abort(reason),
    prompt(
      input: LanguageModelPrompt,
      options: LanguageModelPromptOptions,
      onText: (text: string) => void,
    ): Promise<LanguageModelAnswer> {
      const ready = prepare(input, expectedTypes)
      return operations.runNext(options.signal, async (signal) => {
        const { messages, constraint } = await readOptions(ready, options)
        if (await conversation.makeRoom(messages, true, signal)) onOverflow()
        const { answer, added } = await generate({
          endpoint,
          messages: [...conversation.messages, ...messages],
          constraint,
          tools,
          sampling: sampling.fields,
          onText: (text) => signal.aborted || onText(text),
          signal,
        })
        await conversation.append([...messages.filter(({ prefix }) => !prefix), ...added], signal)
        return answer
      })
    },
    append(input: LanguageModelPrompt, options: LanguageModelSignalOptions): Promise<undefined> {
      const ready = prepare(input, expectedTypes)
      return operations.runNext(options.signal, async (signal) => {
        const messages = await ready
        // An empty list is an empty message for `prompt()`, and nothing here.
        if (input.length === 0) return undefined
        if (await conversation.makeRoom(messages, false, signal)) onOverflow()
        await conversation.append(messages, signal)
        return undefined
      })
    },
    measure(input: LanguageModelPrompt, options: LanguageModelPromptOptions): Promise<number> {
      const ready = prepare(input, expectedTypes)
      return operations.run(options.signal, async (signal) => {
        const { messages } = await readOptions(ready, options)
        return countTokens(endpoint, messages, signal)
      })
    },
    /** Resolves with what another session with the same messages is created with. */
    copy: ({ signal }: LanguageModelSignalOptions): Promise<SessionStart> =>
      operations.run(signal, async () => ({ ...start, state: conversation.copy() })),
  }
}

function prepare(input: LanguageModelPrompt, expectedTypes: readonly LanguageModelMessageType[]) {
  const ready = (async () => readImages(canonicalize(input, expectedTypes, false)))()
  // It may be that nobody waits for it, because the operation ended before.
  ready.catch(() => undefined)
  return ready
}

async function readOptions(ready: Promise<ReadMessage[]>, options: LanguageModelPromptOptions) {
  const { responseConstraint, omitResponseConstraintInput } = options
  const constraint = responseConstraint && readConstraint(responseConstraint)
  const hint = omitResponseConstraintInput ? undefined : constraint
  return { constraint, messages: withHint(await ready, hint) }
}

function withHint(
  messages: readonly ReadMessage[],
  constraint: ResponseConstraint | undefined,
): readonly ReadMessage[] {
  if (!constraint) return messages
  const index = messages.findLastIndex(({ role }) => role === 'user')
  const asked = messages[index]
  const value = asked ? `\n\n${constraint.hint}` : constraint.hint
  const hint = { type: 'text', value } as const
  if (asked) return messages.with(index, { ...asked, content: [...asked.content, hint] })
  const added: ReadMessage = { role: 'user', content: [hint], prefix: false }
  // The text that the answer continues stays the last message.
  const at = messages.at(-1)?.prefix ? messages.length - 1 : messages.length
  return messages.toSpliced(at, 0, added)
}

interface ConversationState {
  /** Messages that are never dropped. */
  initial: readonly HistoryMessage[]
  later: readonly HistoryMessage[]
  toolTokens: number
  usage: number
}

interface Conversation {
  readonly usage: number
  readonly messages: readonly HistoryMessage[]
  copy(): ConversationState
  /**
   * Drops the oldest exchanges until the new messages fit, with an answer if there will be one.
   * Resolves with `true` if it dropped any. Rejects with `QuotaExceededError`, and drops nothing, if
   * the initial messages leave no space. Rejects with `TypeError` if a system message is not first.
   */
  makeRoom(
    added: readonly HistoryMessage[],
    isAnswered: boolean,
    signal: AbortSignal,
  ): Promise<boolean>
  append(added: readonly HistoryMessage[], signal: AbortSignal): Promise<void>
}

/** Largest number of tokens for which room is made before an answer, and its share of the window. */
const [MAX_ANSWER_ROOM, ANSWER_SHARE] = [512, 1 / 8] as const

function createConversation(
  endpoint: Endpoint,
  window: number,
  start: ConversationState,
): Conversation {
  const { initial, toolTokens } = start
  let { later, usage } = start
  const count = async (messages: readonly HistoryMessage[], signal: AbortSignal) =>
    toolTokens + (await countTokens(endpoint, messages, signal))

  return {
    get usage() {
      return usage
    },
    get messages() {
      return [...initial, ...later]
    },
    copy: () => ({ initial, later, toolTokens, usage }),
    async makeRoom(added, isAnswered, signal) {
      assertSystemFirst(added[0]?.role, initial.length + later.length > 0)
      const room = Math.min(MAX_ANSWER_ROOM, Math.floor(window * ANSWER_SHARE))
      const fits = (tokens: number): boolean => tokens + (isAnswered ? room : 0) <= window
      if (fits(await count([...initial, ...later, ...added], signal))) return false
      const least = await count([...initial, ...added], signal)
      const most = isAnswered ? window - 1 : window
      if (least > most) throw quotaExceeded(Math.max(least, window + 1), window)
      const starts = exchangeStarts(later)
      if (starts.length === 0) return false
      // The fewest exchanges to drop: the tokens of the rest only get fewer.
      let [low, high] = [1, starts.length]
      while (low < high) {
        const middle = (low + high) >> 1
        const rest = later.slice(starts[middle] ?? later.length)
        if (fits(await count([...initial, ...rest, ...added], signal))) high = middle
        else low = middle + 1
      }
      await replace(later.slice(starts[low] ?? later.length), signal)
      return true
    },
    append: (added, signal) => replace([...later, ...added], signal),
  }

  /** Replaces the messages after the initial ones, unless the signal aborts meanwhile. */
  async function replace(messages: readonly HistoryMessage[], signal: AbortSignal): Promise<void> {
    const tokens = await count([...initial, ...messages], signal)
    signal.throwIfAborted()
    later = messages
    usage = Math.min(window, tokens)
  }
}

/** Returns where the exchanges begin: at the messages of the user that follow an answer. */
const exchangeStarts = (messages: readonly HistoryMessage[]) =>
  messages.flatMap(({ role }, index) => {
    const isStart = index === 0 || (role === 'user' && messages[index - 1]?.role === 'assistant')
    return isStart ? [index] : []
  })

/** Operation whose signal ends with the session, or with the signal of the caller. */
type Operation<T> = (signal: AbortSignal) => Promise<T>

interface Operations {
  run<T>(signal: AbortSignal | undefined, operation: Operation<T>): Promise<T>
  runNext<T>(signal: AbortSignal | undefined, operation: Operation<T>): Promise<T>
}

function createOperations(ended: AbortSignal): Operations {
  let last: Promise<unknown> = Promise.resolve()

  function run<T>(signal: AbortSignal | undefined, operation: Operation<T>): Promise<T> {
    const either = signal ? AbortSignal.any([ended, signal]) : ended
    if (either.aborted) return Promise.reject(either.reason as Error)
    const work = operation(either).catch((thrown: unknown) => {
      throw either.aborted ? either.reason : toException(thrown, 'UnknownError')
    })
    return unlessAborted(work, either)
  }

  return {
    run,
    runNext: (signal, operation) =>
      run(signal, (either) => {
        const turn = last.then(() => {
          either.throwIfAborted()
          return operation(either)
        })
        // The next operation does not wait for a server that is slow to notice the end.
        last = unlessAborted(turn, either).catch(() => undefined)
        return turn
      }),
  }
}
