/** The state of a store: its snapshot, and the listeners that hear of the next one. */
import type { InoriginError } from '../error.ts'
import type { Server } from '../server.ts'
import type { Device, LoadProgress, ModelState, Tag } from '../types/index.ts'

/** The parts of a server that the store needs. */
export type StoredServer = Pick<Server, 'models' | 'trace' | 'predict'>

/** A model or predictor as the app sees it. */
export interface ModelView {
  tag: Tag
  /** Display name; the tag until the server is open. */
  name: string
  /**
   * `unknown` until the server is open, and for a tag that no catalog lists; `paused` after a load
   * was paused; the others are those of {@link ModelState.status}.
   */
  state: ModelState['status'] | 'paused' | 'unknown'
  /** Download size in bytes; `null` if it is not known yet. */
  bytes: number | null
  /** Device that it runs on, or would run on; `null` if no implementation can run here. */
  device: Device | null
  /** Progress of the load; `null` while it is not loading. */
  progress: LoadProgress | null
  /** Error of the last call of this store; `null` if there is none. */
  error: InoriginError | null
}

/** State of the store at one time. */
export interface StoreSnapshot<S extends StoredServer = Server> {
  /** The server; `null` until it is open. */
  server: S | null
  /** Error of the start, or of the connection to the host; `null` if there is none. */
  error: InoriginError | null
  /** The models and predictors by tag. */
  models: Readonly<Record<Tag, ModelView>>
}

export interface StoreState<S extends StoredServer> {
  readonly snapshot: StoreSnapshot<S>
  /** Makes a new snapshot, and calls the listeners. */
  update(change: Partial<StoreSnapshot<S>>): void
  /** Returns the view of a tag, which is the same object until it changes. */
  view(tag: Tag): ModelView
  setView(tag: Tag, change: Partial<ModelView>): void
  /** Updates the views to the states that the server reports. */
  setStates(states: readonly ModelState[]): void
  /** Calls the listener after each change. Returns a function that ends this. */
  subscribe(listener: () => void): () => void
}

export function createStoreState<S extends StoredServer>(): StoreState<S> {
  const listeners = new Set<() => void>()
  const unknownViews = new Map<Tag, ModelView>()
  let snapshot: StoreSnapshot<S> = { server: null, error: null, models: {} }

  function update(change: Partial<StoreSnapshot<S>>): void {
    snapshot = { ...snapshot, ...change }
    for (const listener of listeners) listener()
  }

  function view(tag: Tag): ModelView {
    const known = snapshot.models[tag] ?? unknownViews.get(tag)
    if (known) return known
    const created = unknownView(tag)
    unknownViews.set(tag, created)
    return created
  }

  return {
    get snapshot() {
      return snapshot
    },
    update,
    view,
    setView(tag, change) {
      update({ models: { ...snapshot.models, [tag]: { ...view(tag), ...change } } })
    },
    setStates(states) {
      const views = states.map((state) => [state.tag, mergeState(view(state.tag), state)] as const)
      update({ models: { ...snapshot.models, ...Object.fromEntries(views) } })
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

const unknownView = (tag: Tag): ModelView => ({
  tag,
  name: tag,
  state: 'unknown',
  bytes: null,
  device: null,
  progress: null,
  error: null,
})

/**
 * Returns the view with the state that the server reports, or the same view if nothing changed. A
 * paused load stays paused.
 */
function mergeState(view: ModelView, { tag, name, status, bytes, device }: ModelState): ModelView {
  const isPaused = view.state === 'paused' && status === 'remote'
  const progress = status === 'loading' ? view.progress : null
  const change = {
    tag,
    name,
    bytes,
    device,
    progress,
    state: isPaused ? 'paused' : status,
  } as const
  const isSame = Object.entries(change).every(
    ([key, value]) => view[key as keyof ModelView] === value,
  )
  return isSame ? view : { ...view, ...change }
}
