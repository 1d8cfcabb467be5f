/**
 * A store of the models and their progress that any framework can subscribe to: `inorigin/store`.
 * Its snapshots never change; a change makes a new one.
 */
import { InoriginError } from '../error.ts'
import type { Server, TaskOptions } from '../server.ts'
import type { Device, LoadProgress, ModelState, Tag, TraceEvent } from '../types/index.ts'
import { disposeKey } from '../values/objects.ts'

/** Functions that change the state of one model or predictor. */
export interface ModelActions {
  /** Loads it. Resolves when it is loaded, or when its view has the error. */
  load(): Promise<void>
  /** Pauses its load, whoever started it. The bytes stay stored. */
  pause(): Promise<void>
  /** Cancels its load, and deletes the bytes of an unfinished download. */
  cancel(): Promise<void>
  /** Frees its memory. */
  unload(): Promise<void>
}

/** Store of the models of one server. `using` closes it at the end of a block. */
export interface ModelStore<S extends StoredServer = Server> extends Disposable {
  /** Returns the state, which is the same object until it changes. */
  getSnapshot(): StoreSnapshot<S>
  /** Calls the listener after each change. Returns a function that ends this. */
  subscribe(listener: () => void): () => void
  /** Opens the server on the first call, and again after a failure. Resolves when that is done. */
  open(): Promise<void>
  /** Returns the view of the tag, which is the same object until it changes. */
  view(tag: Tag): ModelView
  /** Loads the tag. Resolves when it is loaded, or when the view has the error. */
  load(tag: Tag, options?: TaskOptions): Promise<void>
  /** Pauses the load of the tag, whoever started it. Its bytes stay stored. */
  pause(tag: Tag): Promise<void>
  /** Cancels the load of the tag, and deletes the bytes of an unfinished download. */
  cancel(tag: Tag): Promise<void>
  /** Frees the memory of the tag. */
  unload(tag: Tag): Promise<void>
  /** Stops following the server, which stays open. */
  close(): void
}

/** Ends of a load that somebody asked for. They are no errors to show. */
const WANTED_ENDS: readonly (string | undefined)[] = ['load_paused', 'unloaded', 'replaced']

/**
 * Creates a store. `open` is called by {@link ModelStore.open}, and resolves with the server.
 *
 * @example
 * ```ts
 * const store = createModelStore(() => serve())
 * store.subscribe(() => render(store.view('@inorigin/guide')))
 * await store.open()
 * ```
 */
export function createModelStore<S extends StoredServer>(open: () => Promise<S>): ModelStore<S> {
  const closing = new AbortController()
  const { signal } = closing
  const listeners = new Set<() => void>()
  const unknownViews = new Map<Tag, ModelView>()
  let snapshot: StoreSnapshot<S> = { server: null, error: null, models: {} }
  let opening: Promise<void> | undefined

  function update(change: Partial<StoreSnapshot<S>>): void {
    snapshot = { ...snapshot, ...change }
    for (const listener of listeners) listener()
  }

  function view(tag: Tag): ModelView {
    const known = snapshot.models[tag] ?? unknownViews.get(tag)
    if (known) return known
    const unknown = { bytes: null, device: null, progress: null, error: null }
    const created: ModelView = { tag, name: tag, state: 'unknown', ...unknown }
    unknownViews.set(tag, created)
    return created
  }

  function setView(tag: Tag, change: Partial<ModelView>): void {
    update({ models: { ...snapshot.models, [tag]: { ...view(tag), ...change } } })
  }

  const report = (thrown: unknown) => {
    if (!signal.aborted) update({ error: InoriginError.from(thrown) })
  }

  /** Updates the views to the states that the server reports. */
  const refresh = coalesce(async () => {
    const states = (await snapshot.server?.models.list()) ?? []
    const views = states.map((state) => [state.tag, mergeState(view(state.tag), state)] as const)
    update({ models: { ...snapshot.models, ...Object.fromEntries(views) } })
  })

  function onTrace(event: TraceEvent): void {
    if (event.type !== 'load' && event.type !== 'host') return
    if (event.type === 'load' && event.status === 'ended') {
      const isPaused = event.error.code === 'load_paused'
      setView(event.tag, { progress: null, ...(isPaused && { state: 'paused' }) })
    }
    refresh().catch(report)
  }

  function onProgress(progress: LoadProgress): void {
    const isReady = progress.phase === 'ready'
    const state = isReady ? 'loaded' : 'loading'
    setView(progress.tag, { state, progress: isReady ? null : progress, error: null })
  }

  async function start(): Promise<void> {
    const server = await open()
    update({ server, error: null })
    follow(server.models.progress({ signal }), onProgress).catch(report)
    follow(server.trace({ signal }), onTrace).catch(report)
    await refresh()
  }

  const openOnce = () =>
    (opening ??= start().catch((thrown: unknown) => {
      opening = undefined
      report(thrown)
    }))

  /** Runs a call of the server. Its error becomes part of the view. */
  async function act(tag: Tag, call: (models: S['models']) => Promise<void>): Promise<void> {
    try {
      await openOnce()
      const { server, error } = snapshot
      if (!server) throw error
      setView(tag, { error: null })
      await call(server.models)
    } catch (thrown) {
      const error = InoriginError.from(thrown)
      const isWanted = error.kind === 'aborted' || WANTED_ENDS.includes(error.code)
      if (!isWanted) setView(tag, { error })
    }
    await refresh().catch(report)
  }

  const close = () => closing.abort()
  return {
    getSnapshot: () => snapshot,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    open: openOnce,
    view,
    load: (tag, options) => act(tag, (models) => models.load(tag, options)),
    pause: (tag) => act(tag, (models) => models.pause(tag)),
    async cancel(tag) {
      await act(tag, (models) => models.cancel(tag))
      if (view(tag).state === 'paused') setView(tag, { state: 'remote' })
    },
    unload: (tag) => act(tag, (models) => models.unload(tag)),
    close,
    [disposeKey]: close,
  }
}

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

/**
 * Returns the view with the state that the server reports, or the same view if nothing changed. A
 * paused load stays paused.
 */
function mergeState(view: ModelView, { tag, name, status, bytes, device }: ModelState): ModelView {
  const state = view.state === 'paused' && status === 'remote' ? 'paused' : status
  const progress = status === 'loading' ? view.progress : null
  const merged: ModelView = { ...view, tag, name, bytes, device, progress, state }
  const names = Object.keys(merged) as (keyof ModelView)[]
  return names.every((one) => merged[one] === view[one]) ? view : merged
}

async function follow<Event>(events: AsyncIterable<Event>, onEvent: (event: Event) => void) {
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
