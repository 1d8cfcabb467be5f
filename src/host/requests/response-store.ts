/** Stores responses of `/v1/responses` in memory, for later requests that refer to them. */
import type { Host, StoredItem, StoredResponse } from '../../types/index.ts'
import type { CopyMessage, ResponseCopy, ResponseHandover } from '../messages.ts'

/**
 * Default limits: enough for days of chatting, as a conversation fits into a model's context. The
 * bytes are those of JSON in memory, with two for each character.
 */
const DEFAULT_LIMITS = { responses: 1000, bytes: 32 * 2 ** 20 }

type StoredEntry = ResponseCopy & { bytes: number }

interface ResponseStoreOptions {
  limits?: typeof DEFAULT_LIMITS
  /** Responses of an earlier host, the oldest first. */
  initial?: readonly ResponseCopy[]
  onStored?(copy: ResponseCopy): void
  /** Called with the ids of responses that were deleted or evicted. */
  onRemoved?(ids: string[]): void
}

/**
 * The store of a host. A key can only read its own responses. Beyond the limits, the least recently
 * used response of the key that stores the most is evicted. A key cannot evict the responses of a
 * key that stores less; its own new response is not stored then.
 */
export class ResponseStore {
  #options: ResponseStoreOptions
  /** Responses by id, the least recently used first. */
  #entries = new Map<string, StoredEntry>()
  #responseIdByItem = new Map<string, string>()

  constructor(options: ResponseStoreOptions = {}) {
    this.#options = options
    for (const copy of options.initial ?? []) this.#add(copy)
  }

  readonly methods = {
    storeResponse: async (response, { key }) => {
      const { limits = DEFAULT_LIMITS, onStored, onRemoved } = this.#options
      const copy = { response, key }
      this.#remove(response.id)
      this.#add(copy)
      const evicted = selectEvicted(this.#entries, limits)
      if (evicted.includes(response.id)) {
        this.#remove(response.id)
        return false
      }
      for (const id of evicted) this.#remove(id)
      onStored?.(copy)
      if (evicted.length > 0) onRemoved?.(evicted)
      return true
    },
    getStoredResponse: async (id, { key }) => this.#find(id, key),
    getStoredItems: async (ids, { key }) => ids.map((id) => this.#findItem(id, key)),
    deleteStoredResponse: async (id, { key }) => {
      if (this.#find(id, key) === null) return false
      this.#remove(id)
      this.#options.onRemoved?.([id])
      return true
    },
  } satisfies Partial<Host>

  /** Returns all stored responses, the least recently used first. */
  list(): ResponseCopy[] {
    return Array.from(this.#entries.values(), ({ response, key }) => ({ response, key }))
  }

  #add({ response, key }: ResponseCopy): void {
    const { id, output } = response
    this.#entries.set(id, { response, key, bytes: 2 * JSON.stringify(response).length })
    for (const item of output) this.#responseIdByItem.set(item.id, id)
  }

  /** Returns a response of this key, which then counts as used; `null` if there is none. */
  #find(id: string, key: string | null): StoredResponse | null {
    const found = this.#entries.get(id)
    if (!found || found.key !== key) return null
    this.#entries.delete(id)
    this.#entries.set(id, found)
    return found.response
  }

  /** Returns an output item of a response of this key; `null` if there is none. */
  #findItem(id: string, key: string | null): StoredItem | null {
    const response = this.#find(this.#responseIdByItem.get(id) ?? '', key)
    return response?.output.find((item) => item.id === id) ?? null
  }

  #remove(id: string): void {
    for (const item of this.#entries.get(id)?.response.output ?? [])
      this.#responseIdByItem.delete(item.id)
    this.#entries.delete(id)
  }
}

/** Returns the ids of the responses to evict, so that the rest is within the limits. */
function selectEvicted(
  stored: ReadonlyMap<string, StoredEntry>,
  limits: typeof DEFAULT_LIMITS,
): string[] {
  const left = new Map(stored)
  const evicted: string[] = []
  const utilizationOf = (entries: readonly (readonly [string, StoredEntry])[]): number => {
    const bytes = entries.reduce((sum, [, entry]) => sum + entry.bytes, 0)
    return Math.max(entries.length / limits.responses, bytes / limits.bytes)
  }
  while (utilizationOf([...left]) > 1) {
    const keys = new Set(Array.from(left.values(), ({ key }) => key))
    const [largest] = Array.from(keys, (key) =>
      [...left].filter(([, one]) => one.key === key),
    ).toSorted((one, other) => utilizationOf(other) - utilizationOf(one))
    const id = largest?.[0]?.[0] ?? ''
    left.delete(id)
    evicted.push(id)
  }
  return evicted
}

/**
 * Creates the response methods of a host that takes over the responses of an earlier one. Every page
 * has a copy of them (`ResponseCopies` in `host/tab/page.ts`).
 */
export function createSharedResponses({ channelName, copies }: ResponseHandover) {
  const channel = new BroadcastChannel(channelName)
  const publish = (message: CopyMessage): void => channel.postMessage(message)
  const store = new ResponseStore({
    initial: copies,
    onStored: (copy) => publish({ type: 'stored', copies: [copy] }),
    onRemoved: (ids) => publish({ type: 'removed', ids }),
  })
  channel.onmessage = ({ data }: MessageEvent<CopyMessage>) => {
    if (data.type === 'join') publish({ type: 'stored', copies: store.list() })
  }
  return store.methods
}
