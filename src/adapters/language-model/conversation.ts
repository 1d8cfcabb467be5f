/** The messages of a session, and which of them still fit into the context window. */
import type { Endpoint } from './endpoint.ts'
import { quotaExceeded } from './errors.ts'
import { assertSystemFirst } from './messages.ts'
import { countTokens } from './tokens.ts'
import type { HistoryMessage } from './wire-messages.ts'

export interface ConversationState {
  /** Messages that are never dropped. */
  initial: readonly HistoryMessage[]
  later: readonly HistoryMessage[]
  /** Number of tokens that the tools take. */
  toolTokens: number
  /** Number of tokens of all messages and tools. */
  usage: number
}

/** The messages of one session. */
export interface Conversation {
  readonly usage: number
  readonly messages: readonly HistoryMessage[]
  /** Returns a copy of the state, for another session. */
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
  /** Appends messages, and counts the tokens. */
  append(added: readonly HistoryMessage[], signal: AbortSignal): Promise<void>
}

/** Largest number of tokens for which room is made before an answer, and its share of the window. */
const [MAX_ANSWER_ROOM, ANSWER_SHARE] = [512, 1 / 8] as const

/** Creates a conversation in a window of that many tokens. */
export function createConversation(
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
function exchangeStarts(messages: readonly HistoryMessage[]): number[] {
  return messages.flatMap(({ role }, index) => {
    const isStart = index === 0 || (role === 'user' && messages[index - 1]?.role === 'assistant')
    return isStart ? [index] : []
  })
}
