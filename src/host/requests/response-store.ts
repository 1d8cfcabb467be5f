/** Stores responses of `/v1/responses` in memory, for later requests that refer to them. */
import type { Caller, Host, StoredResponse } from '../../types/index.ts'
import type { CopyMessage, ResponseCopy, ResponseHandover } from '../messages.ts'

/** Limits of the stored responses. */
interface ResponseLimits {
  responses: number
  /** Size of all responses in bytes, as JSON in memory with two bytes for each character. */
  bytes: number
}

/** Default limits: enough for days of chatting, as a conversation fits into a model's context. */
const DEFAULT_LIMITS: ResponseLimits = { responses: 1000, bytes: 32 * 2 ** 20 }

interface StoredEntry extends ResponseCopy {
  bytes: number
}

type ResponseMethods = Pick<
  Host,
  'storeResponse' | 'getStoredResponse' | 'getStoredItems' | 'deleteStoredResponse'
>

interface ResponseStoreOptions {
  limits?: ResponseLimits
  /** Responses of an earlier host, the oldest first. */
  initial?: readonly ResponseCopy[]
  onStored?(copy: ResponseCopy): void
  /** Called with the ids of responses that were deleted or evicted. */
  onRemoved?(ids: string[]): void
}

interface ResponseStore {
  methods: ResponseMethods
  /** Returns all stored responses, the least recently used first. */
  list(): ResponseCopy[]
}

/**
 * Creates the store of a host. A key can only read its own responses. Beyond the limits, the least
 * recently used response of the key that stores the most is evicted. A key cannot evict the
 * responses of a key that stores less; its own new response is not stored then. `authorize` throws
 * for an invalid key.
 */
export function createResponseStore(
  authorize: (caller: Caller) => void,
  { limits = DEFAULT_LIMITS, initial = [], onStored, onRemoved }: ResponseStoreOptions = {},
): ResponseStore {
  const index = createIndex(initial)

  const methods: ResponseMethods = {
    async storeResponse(response, caller) {
      authorize(caller)
      const copy = { response, key: caller.key }
      index.remove(response.id)
      index.add(copy)
      const evicted = selectEvicted(index.entries, limits)
      if (evicted.includes(response.id)) {
        index.remove(response.id)
        return false
      }
      evicted.forEach(index.remove)
      onStored?.(copy)
      if (evicted.length > 0) onRemoved?.(evicted)
      return true
    },
    async getStoredResponse(id, caller) {
      authorize(caller)
      return index.find(id, caller.key)
    },
    async getStoredItems(ids, caller) {
      authorize(caller)
      return ids.map((id) => index.findItem(id, caller.key))
    },
    async deleteStoredResponse(id, caller) {
      authorize(caller)
      if (index.find(id, caller.key) === null) return false
      index.remove(id)
      onRemoved?.([id])
      return true
    },
  }
  return {
    methods,
    list: () => Array.from(index.entries.values(), ({ response, key }) => ({ response, key })),
  }
}

/** Creates the index of responses: by id, and by the ids of their output items. */
function createIndex(initial: readonly ResponseCopy[]) {
  /** Responses by id, the least recently used first. */
  const entries = new Map<string, StoredEntry>()
  const responseIdByItem = new Map<string, string>()

  function add({ response, key }: ResponseCopy): void {
    const { id, output } = response
    entries.set(id, { response, key, bytes: 2 * JSON.stringify(response).length })
    for (const item of output) responseIdByItem.set(item.id, id)
  }

  function find(id: string, key: string | null): StoredResponse | null {
    const found = entries.get(id)
    if (!found || found.key !== key) return null
    entries.delete(id)
    entries.set(id, found)
    return found.response
  }

  initial.forEach(add)
  return {
    entries,
    add,
    /** Returns a response of this key, which then counts as used; `null` if there is none. */
    find,
    /** Returns an output item of a response of this key; `null` if there is none. */
    findItem(id: string, key: string | null) {
      const response = find(responseIdByItem.get(id) ?? '', key)
      return response?.output.find((item) => item.id === id) ?? null
    },
    remove(id: string): void {
      for (const item of entries.get(id)?.response.output ?? []) responseIdByItem.delete(item.id)
      entries.delete(id)
    },
  }
}

/** Returns the ids of the responses to evict, so that the rest is within the limits. */
function selectEvicted(stored: ReadonlyMap<string, StoredEntry>, limits: ResponseLimits): string[] {
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

// The stored responses of a host, of which every page has a copy: the next host takes them over
// (`host/tab/response-copies.ts`).

/** Creates the response methods of a host that takes over the responses of an earlier one. */
export function createSharedResponses(
  authorize: (caller: Caller) => void,
  { channelName, copies }: ResponseHandover,
): ResponseMethods {
  const channel = new BroadcastChannel(channelName)
  const publish = (message: CopyMessage): void => channel.postMessage(message)
  const store = createResponseStore(authorize, {
    initial: copies,
    onStored: (copy) => publish({ type: 'stored', copies: [copy] }),
    onRemoved: (ids) => publish({ type: 'removed', ids }),
  })
  channel.onmessage = ({ data }: MessageEvent<CopyMessage>) => {
    if (data.type === 'join') publish({ type: 'stored', copies: store.list() })
  }
  return store.methods
}
