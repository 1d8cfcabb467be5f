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

/** What one key, or all of them, hold. */
interface Held {
  responses: number
  bytes: number
}

/**
 * That part of a host. Each key sees its own alone. Where room is needed, the key that holds the most
 * gives up what it has not asked for the longest; what could only be kept at the cost of keys that hold
 * less is not kept. `authorize` throws where a key is not good.
 */
export function createResponses(
  authorize: (caller: Caller) => void,
  bounds: Bounds = BOUNDS,
): Responses {
  /** By id, the least recently used first. */
  const kept = new Map<string, Kept>()
  /** Ids of responses, by those of the items that they answered. */
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

/** The ids of what has to go for the rest to be within the bounds. */
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
