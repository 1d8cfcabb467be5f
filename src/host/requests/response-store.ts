/** Stores responses of `/v1/responses` in memory, for later requests that refer to them. */
import type { Caller, Host, StoredResponse } from '../../types/index.ts'
import type { ResponseCopy } from '../messages.ts'

/** Limits of the stored responses. */
export interface ResponseLimits {
  responses: number
  /** Size of all responses in bytes, as JSON in memory with two bytes for each character. */
  bytes: number
}

/** Default limits: enough for days of chatting, as a conversation fits into a model's context. */
const DEFAULT_LIMITS: ResponseLimits = { responses: 1000, bytes: 32 * 2 ** 20 }

interface StoredEntry extends ResponseCopy {
  bytes: number
}

export type ResponseMethods = Pick<
  Host,
  'storeResponse' | 'getStoredResponse' | 'getStoredItems' | 'deleteStoredResponse'
>

export interface ResponseStoreOptions {
  limits?: ResponseLimits
  /** Responses of an earlier host, the oldest first. */
  initial?: readonly ResponseCopy[]
  onStored?(copy: ResponseCopy): void
  /** Called with the ids of responses that were deleted or evicted. */
  onRemoved?(ids: string[]): void
}

export interface ResponseStore {
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
  /** Responses by id, the least recently used first. */
  const stored = new Map<string, StoredEntry>()
  /** Ids of responses by the ids of their output items. */
  const responseIdByItem = new Map<string, string>()

  function add({ response, key }: ResponseCopy): void {
    const { id, output } = response
    stored.set(id, { response, key, bytes: 2 * JSON.stringify(response).length })
    for (const item of output) responseIdByItem.set(item.id, id)
  }

  function find(id: string, key: string | null): StoredResponse | null {
    const found = stored.get(id)
    if (!found || found.key !== key) return null
    stored.delete(id)
    stored.set(id, found)
    return found.response
  }

  function remove(id: string): void {
    for (const item of stored.get(id)?.response.output ?? []) responseIdByItem.delete(item.id)
    stored.delete(id)
  }

  initial.forEach(add)
  const methods: ResponseMethods = {
    async storeResponse(response, caller) {
      authorize(caller)
      const copy = { response, key: caller.key }
      remove(response.id)
      add(copy)
      const evicted = selectEvicted(stored, limits)
      if (evicted.includes(response.id)) {
        remove(response.id)
        return false
      }
      evicted.forEach(remove)
      onStored?.(copy)
      if (evicted.length > 0) onRemoved?.(evicted)
      return true
    },
    async getStoredResponse(id, caller) {
      authorize(caller)
      return find(id, caller.key)
    },
    async getStoredItems(ids, caller) {
      authorize(caller)
      return ids.map((id) => {
        const response = find(responseIdByItem.get(id) ?? '', caller.key)
        return response?.output.find((item) => item.id === id) ?? null
      })
    },
    async deleteStoredResponse(id, caller) {
      authorize(caller)
      if (find(id, caller.key) === null) return false
      remove(id)
      onRemoved?.([id])
      return true
    },
  }
  return {
    methods,
    list: () => Array.from(stored.values(), ({ response, key }) => ({ response, key })),
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
