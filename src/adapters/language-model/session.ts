/** The state of a `LanguageModel`: its conversation, and the order of its operations. */
import { unlessAborted } from '../../values/unless-aborted.ts'
import { readConstraint, type ResponseConstraint } from './constraint.ts'
import { type ConversationState, createConversation } from './conversation.ts'
import type { Endpoint } from './endpoint.ts'
import { toException } from './errors.ts'
import { generate } from './generate.ts'
import { readImages, type ReadMessage } from './images.ts'
import { assertSystemFirst, canonicalize } from './messages.ts'
import type { Sampling } from './sampling.ts'
import { countTokens } from './tokens.ts'
import type {
  LanguageModelAnswer,
  LanguageModelMessageType,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
  LanguageModelSignalOptions,
  LanguageModelTool,
} from './types.ts'

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
  let last: Promise<unknown> = Promise.resolve()

  /** Runs an operation that ends with the session, or with the signal of the caller. */
  function run<T>(
    signal: AbortSignal | undefined,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const either = anySignal(destruction.signal, signal)
    if (either.aborted) return Promise.reject(either.reason as Error)
    const work = operation(either).catch((thrown: unknown) => {
      throw either.aborted ? either.reason : toException(thrown, 'UnknownError')
    })
    return unlessAborted(work, either)
  }

  /** Runs an operation after those before it. */
  function runNext<T>(
    signal: AbortSignal | undefined,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return run(signal, (either) => {
      const turn = last.then(() => {
        either.throwIfAborted()
        return operation(either)
      })
      // The next operation does not wait for a server that is slow to notice the end.
      last = unlessAborted(turn, either).catch(() => undefined)
      return turn
    })
  }

  /** Reads the images of a prompt as they are now. */
  function prepare(input: LanguageModelPrompt): Promise<ReadMessage[]> {
    const ready = (async () => readImages(canonicalize(input, expectedTypes, false)))()
    // It may be that nobody waits for it, because the operation ended before.
    ready.catch(() => undefined)
    return ready
  }

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
      { responseConstraint, omitResponseConstraintInput, signal }: LanguageModelPromptOptions,
      onText: (text: string) => void,
    ): Promise<LanguageModelAnswer> {
      const ready = prepare(input)
      return runNext(signal, async (either) => {
        const constraint = responseConstraint && readConstraint(responseConstraint)
        const hint = omitResponseConstraintInput ? undefined : constraint
        const messages = withHint(await ready, hint)
        assertSystemFirst(messages[0]?.role, !conversation.isEmpty)
        if (await conversation.makeRoom(messages, true, either)) onOverflow()
        const { answer, added } = await generate({
          endpoint,
          messages: [...conversation.messages, ...messages],
          constraint,
          tools,
          sampling: sampling.fields,
          onText: (text) => either.aborted || onText(text),
          signal: either,
        })
        const own = messages.at(-1)?.prefix ? messages.slice(0, -1) : messages
        await conversation.append([...own, ...added], either)
        return answer
      })
    },
    append(input: LanguageModelPrompt, { signal }: LanguageModelSignalOptions): Promise<undefined> {
      const ready = prepare(input)
      return runNext(signal, async (either) => {
        const messages = await ready
        // An empty list is an empty message for `prompt()`, and nothing here.
        if (input.length === 0) return undefined
        assertSystemFirst(messages[0]?.role, !conversation.isEmpty)
        if (await conversation.makeRoom(messages, false, either)) onOverflow()
        await conversation.append(messages, either)
        return undefined
      })
    },
    measure(
      input: LanguageModelPrompt,
      { responseConstraint, omitResponseConstraintInput, signal }: LanguageModelPromptOptions,
    ): Promise<number> {
      const ready = prepare(input)
      return run(signal, async (either) => {
        const constraint = responseConstraint && readConstraint(responseConstraint)
        const hint = omitResponseConstraintInput ? undefined : constraint
        return countTokens(endpoint, withHint(await ready, hint), either)
      })
    },
    /** Resolves with what another session with the same messages is created with. */
    copy: ({ signal }: LanguageModelSignalOptions): Promise<SessionStart> =>
      run(signal, async () => ({ ...start, state: conversation.copy() })),
  }
}

function anySignal(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other ? AbortSignal.any([one, other]) : one
}

/** Adds the hint to the last message of the user. */
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
