/** Defers tasks while a run is in progress, such as freeing memory that the run uses. */

export interface IdleQueue {
  /** Runs a task, during which others are deferred. */
  run<T>(task: () => Promise<T>): Promise<T>
  /** Calls a task now, or as soon as no run is in progress. */
  whenIdle(task: () => void): void
}

/** Creates a queue without any runs. */
export function createIdleQueue(): IdleQueue {
  const deferred: (() => void)[] = []
  let running = 0
  return {
    async run(task) {
      running += 1
      try {
        return await task()
      } finally {
        running -= 1
        if (running === 0) for (const each of deferred.splice(0)) each()
      }
    },
    whenIdle(task) {
      if (running > 0) deferred.push(task)
      else task()
    },
  }
}
