/** Keeps the state of a store up to date with its server. */
import { InoriginError } from '../error.ts'
import type { LoadProgress, TraceEvent } from '../types/index.ts'
import type { StoredServer, StoreState } from './store-state.ts'

export interface Follower<S extends StoredServer> {
  /** Follows the server. Resolves once its states are known. */
  start(server: S): Promise<void>
  /** Reads the states again. */
  refresh(): Promise<void>
  /** Shows an error of the connection, unless the store is closed. */
  report(thrown: unknown): void
}

/** Creates what follows a server until the signal aborts. */
export function createFollower<S extends StoredServer>(
  state: StoreState<S>,
  signal: AbortSignal,
): Follower<S> {
  const refresh = coalesce(async () =>
    state.setStates((await state.snapshot.server?.models.list()) ?? []),
  )

  const report = (thrown: unknown) => {
    if (!signal.aborted) state.update({ error: InoriginError.from(thrown) })
  }

  function onTrace(event: TraceEvent): void {
    if (event.type !== 'load' && event.type !== 'host') return
    if (event.type === 'load' && event.status === 'ended') {
      const isPaused = event.error.code === 'load_paused'
      state.setView(event.tag, { progress: null, ...(isPaused && { state: 'paused' }) })
    }
    refresh().catch(report)
  }

  function onProgress(progress: LoadProgress): void {
    const isReady = progress.phase === 'ready'
    state.setView(progress.tag, {
      state: isReady ? 'loaded' : 'loading',
      progress: isReady ? null : progress,
      error: null,
    })
  }

  return {
    async start(server) {
      state.update({ server, error: null })
      follow(server.models.progress({ signal }), onProgress).catch(report)
      follow(server.trace({ signal }), onTrace).catch(report)
      await refresh()
    },
    refresh,
    report,
  }
}

async function follow<Event>(
  events: AsyncIterable<Event>,
  onEvent: (event: Event) => void,
): Promise<void> {
  for await (const event of events) onEvent(event)
}

/** Returns the work such that calls during a run share one later run. */
function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const run = () => {
    running = work().finally(() => (running = undefined))
    return running
  }
  return () => {
    if (!running) return run()
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined
        return run()
      })
    return next
  }
}
