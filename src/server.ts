/** The handle that `serve()` resolves with. */
import type { InputsOf, OutputsOf, TypedTag } from './typed.ts'
import type {
  Explanation,
  ImportProgress,
  Imported,
  LoadProgress,
  ModelState,
  PredictionResult,
  Predictor,
  RepairProgress,
  StorageUsage,
  StoredResource,
  StoredTag,
  Tag,
} from './types/index.ts'

/** Options of everything that takes longer than a moment. */
export interface TaskOptions {
  /** Aborting it gives the task up; what was downloaded stays for the next time. */
  signal?: AbortSignal
  /** Bytes, rate and phase, several times a second. */
  onProgress?: (progress: LoadProgress) => void
}

/** How a predictor is run. */
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

/** How the user's files are taken in. */
export interface ImportOptions {
  /** Aborting it gives the import up; what was stored stays. */
  signal?: AbortSignal
  /** Bytes, rate, remaining time and phase, several times a second. */
  onProgress?: (progress: ImportProgress) => void
  /** Of a tag that no catalog lists: what it is called. Default: as its file or folder is, or the tag. */
  name?: string
  /** Of such a tag: inputs that stay tensors although they look like images. */
  tensors?: readonly string[]
}

/** How what is stored is repaired. */
export interface RepairOptions {
  /** Aborting it gives the repair up; what was fetched stays. */
  signal?: AbortSignal
  /** Bytes, rate, remaining time and phase, several times a second. */
  onProgress?: (progress: RepairProgress) => void
}

/**
 * The files of models and predictors on this device, shared by all tabs of the origin.
 *
 * A download is paused by aborting the signal it was started with, or by `server.models.unload(tag)`,
 * whoever started it: what is there stays. `server.models.load(tag)` resumes it, also after a reload;
 * {@link ModelStorage.remove} cancels it and deletes what is there.
 */
export interface ModelStorage {
  /** Bytes that are stored and may be. */
  usage(): Promise<StorageUsage>
  /** What is stored, by tag; the least recently used first. */
  list(): Promise<StoredTag[]>
  /** What is stored, by file; the least recently used first. Tags that use the same file share it. */
  resources(): Promise<StoredResource[]>
  /**
   * Keeps what is stored for the tag, now or later, from being evicted when another download needs room.
   *
   * @throws InoriginError `not_found` for a tag that is neither listed nor stored.
   */
  pin(tag: Tag): Promise<void>
  /** The opposite. */
  unpin(tag: Tag): Promise<void>
  /**
   * Unloads the tag and deletes the files that no other tag uses, pinned or not, whole or not: a download
   * that is under way is cancelled.
   *
   * @throws InoriginError `not_found` for a tag that is neither listed nor stored.
   */
  remove(tag: Tag): Promise<void>
  /** Unloads everything and deletes all files and pins. What was learnt about this device stays. */
  clear(): Promise<void>
  /** Asks the browser to keep all of it until the user clears it; whether it does. Some ask the user. */
  persist(): Promise<boolean>
  /**
   * Reads everything that is stored of the tag and fetches again the parts that a disk or browser lost;
   * resolves with the bytes of those, 0 when all is well. A load does so by itself where it fails.
   */
  repair(tag: Tag, options?: RepairOptions): Promise<number>
  /**
   * Stores files that the user chose as those of the tag, without the network: files of a file input, or
   * the handle of a folder. They are told by what they hold, whatever they are called, and verified as
   * downloads are. Where a tag names a repository of a hub that was not asked yet, a folder in that
   * layout says itself what the tag consists of.
   *
   * A tag that no catalog lists becomes one of the user's own, on this device: of an ONNX graph with its
   * weights beside it, whose signature is drafted as `inorigin add` does (look at the `notes`), or of a
   * folder of a model as exports for the web or MLC make it. It is pinned, as it can be had from nowhere
   * else, listed wherever others are, kept over reloads, replaced when the tag is imported anew, and ends
   * with {@link ModelStorage.remove}.
   *
   * @example
   * ```ts
   * await server.storage.import('@onnx-community/qwen3-0.6b', await showDirectoryPicker())
   * const { notes } = await server.storage.import('@me/model', input.files ?? [])
   * ```
   * @throws InoriginError `invalid_request` when none of the files belongs to the tag, or they are no model
   * that runs here, `unavailable` when they do not fit, or nothing of them runs on this device.
   */
  import(
    tag: Tag,
    files: Iterable<File> | FileSystemDirectoryHandle,
    options?: ImportOptions,
  ): Promise<Imported>
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
  /**
   * `true` while this page's own `fetch('/v1/...')` is answered; otherwise only {@link Server.fetch}
   * is. It changes when the site's data are cleared: see `onControlChange` of `serve()`.
   */
  readonly controlled: boolean
  /** The options in which this tab differs from the tab that hosts, whose options apply. */
  readonly differences: readonly string[]
  /** Stops hosting in this tab; another tab takes over. The service worker stays registered. */
  close(): void
}
