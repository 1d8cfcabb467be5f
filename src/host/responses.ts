/** Stores responses of `/v1/responses` in memory, for later requests that refer to them. */
import type { Caller, Host, KeptResponse } from '../types/index.ts'

/** Limits of the stored responses. */
export interface Bounds {
  responses: number
  /** Size of all responses in bytes, as JSON in memory with two bytes for each character. */
  bytes: number
}

/** Default limits: enough for days of chatting, as a conversation fits into a model's context. */
const BOUNDS: Bounds = { responses: 1000, bytes: 32 * 2 ** 20 }

interface Kept {
  response: KeptResponse
  /** API key of the owner; `null` if it sent none. */
  key: string | null
  bytes: number
}

type Responses = Pick<Host, 'keepResponse' | 'keptResponse' | 'keptItems' | 'forgetResponse'>

/** Amount that one key, or all keys together, store. */
interface Held {
  responses: number
  bytes: number
}

/**
 * Creates the response methods of a host. A key can only read its own responses. Beyond the limits,
 * the least recently used response of the key that stores the most is evicted. A key cannot evict
 * the responses of a key that stores less; its own new response is not stored then. `authorize`
 * throws for an invalid key.
 */
export function createResponses(
  authorize: (caller: Caller) => void,
  bounds: Bounds = BOUNDS,
): Responses {
  /** Responses by id, the least recently used first. */
  const kept = new Map<string, Kept>()
  /** Ids of responses by the ids of their output items. */
  const homes = new Map<string, string>()

  function find(id: string, key: string | null): KeptResponse | null {
    const found = kept.get(id)
    if (!found || found.key !== key) return null
    kept.delete(id)
    kept.set(id, found)
    return found.response
  }

  function drop(id: string): void {
    for (const item of kept.get(id)?.response.output ?? []) homes.delete(item.id)
    kept.delete(id)
  }

  return {
    async keepResponse(response, caller) {
      authorize(caller)
      const { id, output } = response
      drop(id)
      kept.set(id, { response, key: caller.key, bytes: 2 * JSON.stringify(response).length })
      const tooMany = excess(kept, bounds)
      if (tooMany.includes(id)) {
        kept.delete(id)
        return false
      }
      tooMany.forEach(drop)
      for (const item of output) homes.set(item.id, id)
      return true
    },
    async keptResponse(id, caller) {
      authorize(caller)
      return find(id, caller.key)
    },
    async keptItems(ids, caller) {
      authorize(caller)
      return ids.map((id) => {
        const home = find(homes.get(id) ?? '', caller.key)
        return home?.output.find((item) => item.id === id) ?? null
      })
    },
    async forgetResponse(id, caller) {
      authorize(caller)
      const isOurs = find(id, caller.key) !== null
      if (isOurs) drop(id)
      return isOurs
    },
  }
}

/** Returns the ids of the responses to evict, so that the rest is within the limits. */
function excess(kept: ReadonlyMap<string, Kept>, bounds: Bounds): string[] {
  const all: Held = { responses: 0, bytes: 0 }
  const byKey = new Map<string | null, Held & { ids: string[] }>()
  for (const [id, { key, bytes }] of kept) {
    const own = byKey.get(key) ?? { responses: 0, bytes: 0, ids: [] }
    byKey.set(key, own)
    own.ids.push(id)
    for (const held of [all, own]) {
      held.responses += 1
      held.bytes += bytes
    }
  }
  const shareOf = ({ responses, bytes }: Held): number =>
    Math.max(responses / bounds.responses, bytes / bounds.bytes)
  const gone: string[] = []
  while (shareOf(all) > 1) {
    const [most, ...others] = byKey.values()
    if (!most) break
    const largest = others.reduce(
      (one, other) => (shareOf(other) > shareOf(one) ? other : one),
      most,
    )
    const id = largest.ids.shift() ?? ''
    const { bytes = 0 } = kept.get(id) ?? {}
    gone.push(id)
    for (const held of [all, largest]) {
      held.responses -= 1
      held.bytes -= bytes
    }
  }
  return gone
}
