/**
 * A `LockManager` in memory, by the text of the Web Locks specification, for tests in Node, which has
 * none. Exclusive and shared locks, `signal`, `steal`; one agent.
 */
interface Held {
  mode: LockMode
  stolen: (reason: unknown) => void
}

interface Waiting {
  mode: LockMode
  grant: (held: Held) => void
}

interface Name {
  held: Set<Held>
  queue: Waiting[]
}

export function createLocks(): LockManager {
  const names = new Map<string, Name>()

  function nameOf(name: string): Name {
    const entry = names.get(name) ?? { held: new Set(), queue: [] }
    names.set(name, entry)
    return entry
  }

  function grantable(entry: Name, mode: LockMode): boolean {
    return [...entry.held].every((held) => held.mode === 'shared' && mode === 'shared')
  }

  function drain(entry: Name): void {
    for (let next = entry.queue[0]; next && grantable(entry, next.mode); next = entry.queue[0]) {
      entry.queue.shift()
      next.grant(hold(entry, next.mode))
    }
  }

  function hold(entry: Name, mode: LockMode): Held {
    const held: Held = { mode, stolen: () => {} }
    entry.held.add(held)
    return held
  }

  async function request(
    name: string,
    ...rest: [LockOptions, LockGrantedCallback<unknown>] | [LockGrantedCallback<unknown>]
  ): Promise<unknown> {
    const [options, callback] = rest.length === 2 ? rest : [{}, rest[0]]
    const { mode = 'exclusive', signal, steal = false } = options
    const entry = nameOf(name)
    signal?.throwIfAborted()
    const held = await (steal ? take(entry, mode) : queue(entry, mode, signal))
    const stolen = new Promise<never>((_resolve, reject) => (held.stolen = reject))
    try {
      return await Promise.race([stolen, callback({ name, mode } as Lock)])
    } finally {
      entry.held.delete(held)
      drain(entry)
    }
  }

  function take(entry: Name, mode: LockMode): Held {
    for (const held of entry.held) held.stolen(new DOMException('Stolen', 'AbortError'))
    entry.held.clear()
    return hold(entry, mode)
  }

  function queue(entry: Name, mode: LockMode, signal?: AbortSignal): Promise<Held> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { mode, grant: resolve }
      entry.queue.push(waiting)
      signal?.addEventListener('abort', () => {
        const index = entry.queue.indexOf(waiting)
        if (index < 0) return
        entry.queue.splice(index, 1)
        reject(signal.reason)
        drain(entry)
      })
      drain(entry)
    })
  }

  return {
    request: request as LockManager['request'],
    query: async () => ({ held: [], pending: [] }),
  }
}
