/** The conversations of this device, in IndexedDB. Nothing here leaves it. */
import { openDB, type DBSchema, type IDBPDatabase } from 'idb'
import { merge, type Conversation } from '../chat/tree.ts'

const DATABASE = 'playground'
const CHANNEL = 'playground:history'

interface Schema extends DBSchema {
  conversations: { key: string; value: Conversation; indexes: { changed: number } }
}

/** A conversation in the list. */
export type Heading = Pick<Conversation, 'id' | 'title' | 'changed'> & { turnCount: number }

/** A change that another tab has made to a conversation. */
export interface HistoryChange {
  type: 'saved' | 'removed'
  id: string
}

export interface HistoryStore {
  /** Lists the conversations that contain all words of the query, the last changed one first. */
  list(query?: string): Promise<Heading[]>
  get(id: string): Promise<Conversation | undefined>
  all(): Promise<Conversation[]>
  /**
   * Saves a conversation, with the turns that other tabs have added. Saves nothing if it was saved
   * before and another tab has deleted it.
   */
  save(conversation: Conversation): Promise<void>
  /** Adds a conversation that comes from elsewhere. Replaces one of the same id. */
  add(conversation: Conversation): Promise<void>
  rename(id: string, title: string): Promise<void>
  /** Deletes a conversation for good. */
  remove(id: string): Promise<void>
  removeAll(): Promise<void>
  /** Calls this function after each change. `isOwn` is `false` for one of another tab. */
  onChange(listener: (change: HistoryChange, isOwn: boolean) => void): void
}

/** Opens the history. The database is opened with the first use. */
export function createHistoryStore(): HistoryStore {
  const channel = new BroadcastChannel(CHANNEL)
  const listeners: ((change: HistoryChange, isOwn: boolean) => void)[] = []
  /** Conversations that this tab has read or written. One that is missing then was deleted. */
  const known = new Set<string>()
  let opening: Promise<IDBPDatabase<Schema>> | undefined

  function open(): Promise<IDBPDatabase<Schema>> {
    opening ??= openDB<Schema>(DATABASE, 1, {
      upgrade(database) {
        const made = database.createObjectStore('conversations', { keyPath: 'id' })
        made.createIndex('changed', 'changed')
      },
      blocking: () => void opening?.then((database) => database.close()),
      terminated: () => (opening = undefined),
    })
    opening.catch(() => (opening = undefined))
    return opening
  }

  function tell(change: HistoryChange, isOwn: boolean): void {
    for (const listener of listeners) listener(change, isOwn)
  }

  function announce(change: HistoryChange): void {
    channel.postMessage(change)
    tell(change, true)
  }

  channel.addEventListener('message', ({ data }: MessageEvent<HistoryChange>) => tell(data, false))

  async function write(
    id: string,
    change: (stored: Conversation | undefined) => Conversation | undefined,
  ): Promise<void> {
    const database = await open()
    const transaction = database.transaction('conversations', 'readwrite')
    const changed = change(await transaction.store.get(id))
    if (changed) await transaction.store.put(changed)
    await transaction.done
    if (!changed) return
    known.add(id)
    announce({ type: 'saved', id })
  }

  return {
    async list(query = '') {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean)
      const database = await open()
      const headings: Heading[] = []
      const { store } = database.transaction('conversations')
      for await (const { value } of store.index('changed').iterate(null, 'prev')) {
        if (words.length > 0 && !contains(value, words)) continue
        headings.push(toHeading(value))
      }
      return headings
    },
    async get(id) {
      const found = await (await open()).get('conversations', id)
      if (found) known.add(id)
      return found
    },
    async all() {
      return (await open()).getAll('conversations')
    },
    save: (conversation) =>
      write(conversation.id, (stored) => {
        if (stored) return merge(stored, conversation)
        return known.has(conversation.id) ? undefined : conversation
      }),
    add: (conversation) => write(conversation.id, () => conversation),
    rename: (id, title) =>
      write(id, (stored) => stored && { ...stored, title, changed: Date.now() }),
    async remove(id) {
      known.add(id)
      await (await open()).delete('conversations', id)
      announce({ type: 'removed', id })
    },
    async removeAll() {
      const database = await open()
      const ids = await database.getAllKeys('conversations')
      await database.clear('conversations')
      for (const id of ids) {
        known.add(id)
        announce({ type: 'removed', id })
      }
    },
    onChange: (listener) => void listeners.push(listener),
  }
}

export function toHeading({ id, title, changed, turns }: Conversation): Heading {
  return { id, title, changed, turnCount: turns.length }
}

function contains({ title, turns }: Conversation, words: readonly string[]): boolean {
  const texts = turns.flatMap(({ question, answer }) => [question, answer?.text ?? ''])
  const text = [title, ...texts].join('\n').toLowerCase()
  return words.every((word) => text.includes(word))
}
