/**
 * A store of the models and their progress that any framework can subscribe to: `inorigin/store`.
 * Its snapshots never change; a change makes a new one.
 */
import { InoriginError } from '../error.ts'
import type { Server, TaskOptions } from '../server.ts'
import type { Tag } from '../types/index.ts'
import { disposeKey } from '../values/dispose-key.ts'
import { createFollower } from './follow-server.ts'
import {
  createStoreState,
  type ModelView,
  type StoredServer,
  type StoreSnapshot,
} from './store-state.ts'

export type { ModelView, StoredServer, StoreSnapshot } from './store-state.ts'

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
  const state = createStoreState<S>()
  const follower = createFollower(state, closing.signal)
  let opening: Promise<void> | undefined

  const start = async (): Promise<void> => follower.start(await open())

  /** Runs a call of the server. Its error becomes part of the view. */
  async function act(tag: Tag, call: (models: S['models']) => Promise<void>): Promise<void> {
    try {
      await api.open()
      const { server, error } = state.snapshot
      if (!server) throw error
      state.setView(tag, { error: null })
      await call(server.models)
    } catch (thrown) {
      const error = InoriginError.from(thrown)
      const isWanted = error.kind === 'aborted' || WANTED_ENDS.includes(error.code)
      if (!isWanted) state.setView(tag, { error })
    }
    await follower.refresh().catch(follower.report)
  }

  const close = () => closing.abort()
  const api: ModelStore<S> = {
    getSnapshot: () => state.snapshot,
    subscribe: state.subscribe,
    open() {
      opening ??= start().catch((thrown: unknown) => {
        opening = undefined
        follower.report(thrown)
      })
      return opening
    },
    view: state.view,
    load: (tag, options) => act(tag, (models) => models.load(tag, options)),
    pause: (tag) => act(tag, (models) => models.pause(tag)),
    async cancel(tag) {
      await act(tag, (models) => models.cancel(tag))
      if (state.view(tag).state === 'paused') state.setView(tag, { state: 'remote' })
    },
    unload: (tag) => act(tag, (models) => models.unload(tag)),
    close,
    [disposeKey]: close,
  }
  return api
}
