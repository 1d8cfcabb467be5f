/** Puts off what must not happen while a run is on its way: memory that it uses stays where it is. */

export interface Idle {
  during<T>(task: () => Promise<T>): Promise<T>
  /** Does something now, or when nothing is on its way any more. */
  after(task: () => void): void
}

export function createIdle(): Idle {
  const later: (() => void)[] = []
  let running = 0
  return {
    async during(task) {
      running += 1
      try {
        return await task()
      } finally {
        running -= 1
        if (running === 0) for (const each of later.splice(0)) each()
      }
    },
    after(task) {
      if (running > 0) later.push(task)
      else task()
    },
  }
}
