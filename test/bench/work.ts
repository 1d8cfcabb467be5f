/**
 * What is asked of a GPU, counted: the same on every machine, however busy, and what tells why a time
 * is as it is on one of software.
 */

export interface Work {
  dispatches: number
  /** Of all dispatches. */
  workgroups: number
  /** Bytes that were set to zero. */
  cleared: number
  /** Bytes that were copied by commands; what shaders copy counts as their workgroups. */
  copied: number
}

const done: Work = { dispatches: 0, workgroups: 0, cleared: 0, copied: 0 }

/** What this thread has asked since {@link countWork}. */
export const workDone = (): Work => ({ ...done })

/** Each of these times that of the work between two points. */
export function workBetween(from: Work, to: Work, times: number): Work {
  const entries = Object.entries(from) as [keyof Work, number][]
  return Object.fromEntries(
    entries.map(([name, before]) => [name, (to[name] - before) * times]),
  ) as unknown as Work
}

/** Counts from now on. */
export function countWork(): void {
  if (!navigator.gpu) return
  tellOf(GPUComputePassEncoder.prototype, 'dispatchWorkgroups', (x, y = 1, z = 1) => {
    done.dispatches += 1
    done.workgroups += x * y * z
  })
  tellOf(
    GPUCommandEncoder.prototype,
    'clearBuffer',
    (buffer, offset = 0, size = buffer.size - offset) => {
      done.cleared += size
    },
  )
  // The size is last, in its short form too.
  tellOf(GPUCommandEncoder.prototype, 'copyBufferToBuffer', (...given) => {
    done.copied += Number(given.at(-1))
  })
}

type Method = (...args: never[]) => unknown

/** Has a method of all such objects tell what it is called with. */
function tellOf<T extends object, Name extends keyof T>(
  prototype: T,
  name: Name,
  tell: (...args: T[Name] extends Method ? Parameters<T[Name]> : never) => void,
): void {
  const method = prototype[name] as (...args: unknown[]) => unknown
  Object.assign(prototype, {
    [name](this: T, ...args: unknown[]) {
      tell(...(args as Parameters<typeof tell>))
      return method.apply(this, args)
    },
  })
}
