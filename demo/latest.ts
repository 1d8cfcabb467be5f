/** Work of which only the latest counts. */
export interface Latest {
  /** Aborts the running work. Returns the signal of the next one. */
  begin(): AbortSignal
  giveUp(): void
}

export function createLatest(): Latest {
  let running: AbortController | undefined
  return {
    begin() {
      running?.abort()
      running = new AbortController()
      return running.signal
    },
    giveUp: () => running?.abort(),
  }
}
