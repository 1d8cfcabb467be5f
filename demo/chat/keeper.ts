/** Keeps the conversation of this tab in the history, and finds it again after a reload. */
import type { HistoryStore } from '../history/store.ts'
import { notice, wordsOf } from '../notice.ts'
import type { Conversation } from './tree.ts'

const KEY = 'playground:conversation'
const WAITING = 'playground:waiting'

/** Milliseconds between two saves while an answer arrives. */
const SAVE_INTERVAL_MS = 2_000

export interface Keeper {
  /** Saves a conversation. Never rejects: a failure is shown once. */
  save(conversation: Conversation): Promise<void>
  /** Saves after a while what `update` changes; for an answer that arrives. */
  saveLater(conversation: Conversation, update: () => void): void
  /** Notes which conversation a reload shows. */
  remember(id: string | undefined): void
  /** Notes the question that waits for the server to start; `undefined` if none does. */
  setWaiting(question: string | undefined): void
  /** Returns the question that waited when the page was reloaded, which isolates it. Forgets it. */
  takeWaiting(): string | undefined
  /** Stores the conversation of a link. The address forgets it, so that a reload does not repeat it. */
  fromAddress(): Promise<Conversation | undefined>
  /** Resolves with the conversation of this tab before a reload. */
  restore(): Promise<Conversation | undefined>
}

export function createKeeper(history: HistoryStore): Keeper {
  let lastSave = 0
  let hasFailed = false

  function note(key: string, value: string | undefined): void {
    if (value === undefined) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, value)
  }

  const remember = (id: string | undefined): void => note(KEY, id)

  async function save(conversation: Conversation): Promise<void> {
    lastSave = performance.now()
    await history.save(conversation).catch((error: unknown) => {
      if (hasFailed) return
      hasFailed = true
      const what = 'This conversation cannot be kept in the history of this browser'
      notice(`${what} (${wordsOf(error)}). A reload loses it.`, 'mild')
    })
  }

  async function fromAddress(): Promise<Conversation | undefined> {
    if (!location.hash.startsWith('#chat=')) return undefined
    const { fromFragment } = await import('../history/link.ts')
    const shared = await fromFragment(location.hash)
    if (!shared) return undefined
    await history.add(shared)
    remember(shared.id)
    // Only now: `serve()` may have reloaded the page to isolate it.
    window.history.replaceState(null, '', location.pathname + location.search)
    notice(
      'This conversation came with the link. It is now in the history of this browser.',
      'mild',
    )
    return shared
  }

  return {
    save,
    saveLater(conversation, update) {
      if (performance.now() - lastSave < SAVE_INTERVAL_MS) return
      update()
      void save(conversation)
    },
    remember,
    setWaiting: (question) => note(WAITING, question),
    takeWaiting() {
      const question = sessionStorage.getItem(WAITING) ?? undefined
      note(WAITING, undefined)
      return question
    },
    fromAddress,
    async restore() {
      const id = sessionStorage.getItem(KEY)
      return id === null ? undefined : history.get(id)
    },
  }
}
