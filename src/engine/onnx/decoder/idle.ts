/** Defers tasks while a run is in progress, such as freeing memory that the run uses. */

export interface Idle {
  /** Runs a task, during which others are deferred. */
  during<T>(task: () => Promise<T>): Promise<T>
  /** Calls a task now, or as soon as no run is in progress. */
  after(task: () => void): void
}

/** Creates an idle state without any runs. */
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
