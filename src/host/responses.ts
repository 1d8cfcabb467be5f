/** What was answered at `/v1/responses`, kept in memory for the requests that refer to it. */
import type { Caller, Host, KeptResponse } from '../types/index.ts'

/** How much is kept. */
export interface Bounds {
  responses: number
  /** Of all of them, as JSON in memory: two for each character. */
  bytes: number
}

/** Room for some days of chatting; a conversation is no longer than a model's context. */
const BOUNDS: Bounds = { responses: 1000, bytes: 32 * 2 ** 20 }

interface Kept {
  response: KeptResponse
  /** Whose it is. */
  key: string | null
  bytes: number
}

type Responses = Pick<Host, 'keepResponse' | 'keptResponse' | 'keptItems' | 'forgetResponse'>

/**
 * That part of a host. What was not asked for the longest is forgotten, and what alone is larger than
 * the bounds not kept; each key sees its own alone. `authorize` throws where a key is not good.
 */
export function createResponses(
  authorize: (caller: Caller) => void,
  { responses: most, bytes: mostBytes }: Bounds = BOUNDS,
): Responses {
  /** By id, the least recently used first. */
  const kept = new Map<string, Kept>()
  /** Ids of responses, by those of the items that they answered. */
  const homes = new Map<string, string>()
  let bytes = 0

  function find(id: string, key: string | null): KeptResponse | null {
    const found = kept.get(id)
    if (!found || found.key !== key) return null
    kept.delete(id)
    kept.set(id, found)
    return found.response
  }

  function drop(id: string): void {
    const dropped = kept.get(id)
    if (!dropped) return
    kept.delete(id)
    for (const item of dropped.response.output) homes.delete(item.id)
    bytes -= dropped.bytes
  }

  return {
    async keepResponse(response, caller) {
      authorize(caller)
      const { id, output } = response
      drop(id)
      const size = 2 * JSON.stringify(response).length
      if (size > mostBytes) return
      kept.set(id, { response, key: caller.key, bytes: size })
      for (const item of output) homes.set(item.id, id)
      bytes += size
      for (const oldest of kept.keys()) {
        if (kept.size <= most && bytes <= mostBytes) break
        drop(oldest)
      }
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
