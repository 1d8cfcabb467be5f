/** The state of a `LanguageModel`: its conversation, and what can be done with it. */
import { readConstraint, type ResponseConstraint } from './constraint.ts'
import { type ConversationState, createConversation } from './conversation.ts'
import type { Endpoint } from './endpoint.ts'
import { generate } from './generate.ts'
import { readImages, type ReadMessage } from './images.ts'
import { canonicalize } from './messages.ts'
import { createOperations } from './operations.ts'
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

/** Reads the images of a prompt as they are now. */
function prepare(
  input: LanguageModelPrompt,
  expectedTypes: readonly LanguageModelMessageType[],
): Promise<ReadMessage[]> {
  const ready = (async () => readImages(canonicalize(input, expectedTypes, false)))()
  // It may be that nobody waits for it, because the operation ended before.
  ready.catch(() => undefined)
  return ready
}

/** Resolves with the constraint of an answer, and the messages with its hint if they need one. */
async function readOptions(ready: Promise<ReadMessage[]>, options: LanguageModelPromptOptions) {
  const { responseConstraint, omitResponseConstraintInput } = options
  const constraint = responseConstraint && readConstraint(responseConstraint)
  const hint = omitResponseConstraintInput ? undefined : constraint
  return { constraint, messages: withHint(await ready, hint) }
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
