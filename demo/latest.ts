/** Work of which the latest alone counts. */
export interface Latest {
  /** Gives up what is under way; the signal is that of what begins. */
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
