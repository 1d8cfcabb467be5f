/** Hooks for React, `inorigin/react`. */
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { InoriginError } from '../error.ts'
import type { PredictOptions, Server } from '../server.ts'
import type { InputsOf, OutputsOf, TypedTag } from '../typed.ts'
import type { Tag } from '../types/index.ts'
import {
  createModelStore,
  type ModelActions,
  type ModelView,
  type StoredServer,
  type StoreSnapshot,
} from './store.ts'

/** Function of the first `useServer` that was rendered. All hooks of the page share one server. */
let openServer: (() => Promise<StoredServer>) | undefined
const store = createModelStore(async () => {
  if (openServer) return openServer()
  throw new InoriginError('invalid_request', 'Call useServer() in the root component of the app.')
})
const initial = store.getSnapshot()

/**
 * Opens the server of the page once, such as `useServer(serve)`, and returns it with the error of
 * its start. The server stays open when components unmount. Call it in the app's root component.
 */
export function useServer<S extends StoredServer = Server>(
  open: () => Promise<S>,
): Pick<StoreSnapshot<S>, 'server' | 'error'> {
  openServer ??= open
  const { server, error } = useSyncExternalStore(store.subscribe, store.getSnapshot, () => initial)
  useEffect(() => void store.open(), [])
  return { server: server as S | null, error } // The server of the first `open`.
}

/** State of a model or predictor, and functions that change it. */
export interface UsedModel extends ModelView, ModelActions {}

/** Returns the state of the tag. The component renders again when it changes. */
export function useModel(tag: Tag): UsedModel {
  const view = () => store.view(tag)
  const current = useSyncExternalStore(store.subscribe, view, view)
  const actions = useMemo(
    () => ({
      load: () => store.load(tag),
      pause: () => store.pause(tag),
      cancel: () => store.cancel(tag),
      unload: () => store.unload(tag),
    }),
    [tag],
  )
  return { ...current, ...actions }
}

/** State of a predictor and of its last prediction. */
export interface UsedPredictor<Name extends TypedTag> extends UsedModel {
  /** Outputs of the last prediction that succeeded; `null` before it. */
  outputs: OutputsOf<Name> | null
  /** Runs the predictor and resolves with its outputs. Rejects with the error that `error` shows. */
  predict(inputs: InputsOf<Name>, options?: PredictOptions): Promise<OutputsOf<Name>>
}

/** Returns the state of the predictor, and a function that runs it. It loads at the first run. */
export function usePredictor<Name extends TypedTag>(tag: Name): UsedPredictor<Name> {
  const model = useModel(tag)
  const [outputs, setOutputs] = useState<OutputsOf<Name> | null>(null)
  const [error, setError] = useState<InoriginError | null>(null)
  const predict = useCallback<UsedPredictor<Name>['predict']>(
    async (inputs, options) => {
      setError(null)
      try {
        await store.open()
        const { server, error: failed } = store.getSnapshot()
        if (!server) throw failed
        const { outputs: computed } = await server.predict(tag, inputs, options)
        setOutputs(computed)
        return computed
      } catch (thrown) {
        setError(InoriginError.from(thrown))
        throw thrown
      }
    },
    [tag],
  )
  return { ...model, error: error ?? model.error, outputs, predict }
}
