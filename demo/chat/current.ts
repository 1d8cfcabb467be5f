/** The conversation on the page, and the answer that arrives in it. */
import type { Composer } from '../composer.ts'
import type { HistoryStore } from '../history/store.ts'
import type { ConversationView } from './conversation.ts'
import type { Keeper } from './keeper.ts'
import { createConversation, takeOver, type Conversation, type Turn } from './tree.ts'
import type { TurnView } from './turn.ts'

export interface Current {
  readonly conversation: Conversation
  /** `true` while an answer arrives. */
  readonly isBusy: boolean
  /** Shows the conversation after a change. Returns the view of each turn. */
  render(): Map<Turn, TurnView>
  /** Shows another conversation. Stops a running answer, which stays in its own conversation. */
  show(next: Conversation): void
  /** Shows what another tab has added to the conversation, once no answer arrives. */
  refresh(): Promise<void>
  /** Shows a turn whose answer is yet to come. Returns its view and the signal that stops it. */
  begin(turn: Turn): { turnView: TurnView; signal: AbortSignal } | undefined
  /** Notes that the answer of a signal has ended. */
  end(signal: AbortSignal): void
  /** Stops a running answer. */
  stop(): void
  /** Calls a function with the id of each conversation that is shown from now on. */
  onShow(listener: (id: string) => void): void
}

interface Parts {
  view: ConversationView
  keeper: Keeper
  history: HistoryStore
  composer: Composer
}

/** Creates an empty conversation. */
export function createCurrent({ view, keeper, history, composer }: Parts): Current {
  let conversation = createConversation()
  const listeners: ((id: string) => void)[] = []
  let running: AbortController | undefined
  /** `true` if another tab has changed the conversation while an answer arrived here. */
  let hasMissed = false

  const render = (asked?: Turn): Map<Turn, TurnView> => view.show(conversation, asked)

  function setRunning(next: AbortController | undefined): void {
    running = next
    composer.setBusy(next !== undefined)
    view.setBusy(next !== undefined)
  }

  function show(next: Conversation): void {
    running?.abort()
    conversation = next
    keeper.remember(next.turns.length > 0 ? next.id : undefined)
    render()
    setRunning(undefined)
    view.scrollToEnd()
    composer.focus()
    for (const listener of listeners) listener(next.id)
  }

  async function refresh(): Promise<void> {
    hasMissed = running !== undefined
    if (hasMissed) return
    const found = await history.get(conversation.id)
    if (!found || found.id !== conversation.id || running) return
    conversation = takeOver(found, conversation)
    render()
  }

  return {
    get conversation() {
      return conversation
    },
    get isBusy() {
      return running !== undefined
    },
    render: () => render(),
    show,
    refresh,
    begin(turn) {
      const turnView = render(turn).get(turn)
      if (!turnView) return undefined
      const own = new AbortController()
      setRunning(own)
      return { turnView, signal: own.signal }
    },
    end(signal) {
      if (running?.signal !== signal) return
      setRunning(undefined)
      if (hasMissed) void refresh()
    },
    stop: () => running?.abort(),
    onShow: (listener) => void listeners.push(listener),
  }
}
