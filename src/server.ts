/** The handle that `serve()` resolves with. */
import type { ModelStorage } from './storage.ts'
import type {
  Explanation, InputsOf, LoadProgress, ModelState, OutputsOf, PredictionResult, Predictor, Tag, TypedTag,
} from './types/index.ts'

/** Options of everything that takes longer than a moment. */
export interface TaskOptions {
  /** Aborting it gives the task up; what was downloaded stays for the next time. */
  signal?: AbortSignal
  /** Bytes, rate and phase, several times a second. */
  onProgress?: (progress: LoadProgress) => void
}

export interface PredictOptions extends TaskOptions {
  /** The `configuration` of a prediction, to run the implementation it chose. */
  configuration?: string
}

/** The models and predictors of the catalog, as they stand on this device. */
export interface Models {
  list(): Promise<ModelState[]>
  /**
   * Downloads what is missing and brings it into memory. Aborting the signal pauses the download, unless
   * others wait for the same; loading again resumes it.
   */
  load(tag: Tag, options?: TaskOptions): Promise<void>
  /**
   * Every step of every load, whichever tab or request asked for it: `for await (const step of
   * server.models.progress())`. Ends with the signal, or when the loop is left.
   */
  progress(options?: { signal?: AbortSignal }): AsyncIterable<LoadProgress>
  /** Frees its memory, or ends its load for all who wait; what is stored stays. */
  unload(tag: Tag): Promise<void>
  /** {@link ModelStorage.remove}. */
  remove(tag: Tag): Promise<void>
}

/** A predictor by itself: what the catalog says of it, its signature above all, and how to run it. */
export interface PredictorHandle<Name extends Tag = Tag> extends Predictor {
  /** {@link Server.predict} with its tag. */
  predict(
    inputs: InputsOf<Name>,
    options?: PredictOptions,
  ): Promise<PredictionResult<OutputsOf<Name>>>
}

/** This origin as an inference server. */
export interface Server {
  /**
   * Answers `/v1` without going through the service worker, for SDKs that take a `fetch` and for pages
   * that have no service worker. Anything else goes to the browser's own `fetch`.
   */
  readonly fetch: typeof fetch
  readonly models: Models
  /** The files of models and predictors on this device. */
  readonly storage: ModelStorage
  /**
   * Runs a predictor. Inputs are given by parameter name: numbers, bigints, booleans and texts; arrays,
   * typed arrays and `{ data, shape }` for tensors; whatever shows an image (`ImageData`,
   * `ImageBitmap`, `Blob`, a canvas, an image or video element, `VideoFrame`), or an array of them where
   * the model takes several; arrays and objects for lists and dicts; bytes; names or values of an
   * enumeration. What is given stays the caller's: bitmaps and frames are not closed.
   *
   * @example
   * ```ts
   * const { outputs } = await server.predict('@inorigin/digits', { image: canvas })
   * ```
   * @throws InoriginError `invalid_request` naming the input that does not fit the signature,
   * `not_found` for an unknown tag, `aborted` as soon as the signal is.
   */
  predict<Name extends TypedTag>(
    tag: Name,
    inputs: InputsOf<Name>,
    options?: PredictOptions,
  ): Promise<PredictionResult<OutputsOf<Name>>>
  /**
   * One predictor to run again and again, with its signature; nothing is downloaded yet.
   *
   * @throws InoriginError `not_found` for an unknown tag, and for one of a language model.
   */
  predictor<Name extends TypedTag>(tag: Name): Promise<PredictorHandle<Name>>
  /**
   * Which implementation of that tag this device uses, why, and why each other one is not used, with
   * what was measured here. Nothing is loaded for it; a comparison that is under way is waited for.
   *
   * @throws InoriginError `not_found` for an unknown tag.
   */
  explain(tag: Tag, options?: { signal?: AbortSignal }): Promise<Explanation>
  /** Ends in `/v1`: the base URL of OpenAI-style clients. */
  readonly baseURL: string
  /** Does not end in `/v1`: the base URL of Anthropic-style clients. */
  readonly origin: string
  /** Whether this page's own `fetch('/v1/...')` is answered; if not, only {@link Server.fetch} is. */
  readonly controlled: boolean
  /** The options in which this tab differs from the tab that hosts, whose options apply. */
  readonly differences: readonly string[]
  /** Stops hosting in this tab; another tab takes over. The service worker stays registered. */
  close(): void
}
