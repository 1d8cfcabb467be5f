/// <reference lib="esnext.disposable" preserve="true" />
/** The types of the server handle that `serve()` resolves with. */
import type { InputsOf, OutputsOf, TypedTag } from './typed.ts'
import type {
  Bridge,
  BridgeOptions,
  Explanation,
  Imported,
  ImportProgress,
  LoadProgress,
  ModelState,
  PredictionResult,
  Predictor,
  RepairProgress,
  StorageUsage,
  StoredAsset,
  StoredResource,
  StoredTag,
  Tag,
  TraceEvent,
} from './types/index.ts'
import type { OptionNames } from './validate-arguments.ts'

/** Options of long-running operations. */
export interface TaskOptions<Progress = LoadProgress> {
  /** Signal that cancels the operation. Bytes that were downloaded or stored stay. */
  signal?: AbortSignal
  /** Callback for the progress: phase, bytes, rate and time, several times a second. */
  onProgress?: (progress: Progress) => void
}

/** Options of {@link Models.load}. */
export interface LoadOptions extends TaskOptions {
  /**
   * `true` to try implementations again whose loads ended the page or its worker twice within an
   * hour. Default: `false`, which takes a smaller implementation or fails with `load_crashed`.
   */
  retryCrashed?: boolean
}

/** Options of {@link Server.predict}. */
export interface PredictOptions extends TaskOptions {
  /** The `configuration` of an earlier prediction. Default: the best one for this device. */
  configuration?: string
  /**
   * Callback for the text that a predictor writes, as far as it is written, several times a second. A text that
   * begins again, as after the end of the tab that wrote it, becomes shorter. It is not called for several texts.
   */
  onText?: (text: string) => void
}

/** The models and predictors of the catalog on this device. */
export interface Models {
  /** Resolves with the state of every model and predictor. */
  list(): Promise<ModelState[]>
  /**
   * Downloads the missing files and loads the model or predictor into memory. Aborting the signal
   * pauses the download, unless others wait for it too. The next `load` resumes it.
   *
   * @throws InoriginError `not_found` for an unknown tag.
   */
  load(tag: Tag, options?: LoadOptions): Promise<void>
  /**
   * Yields the progress of every load, whichever tab or request started it. It ends when the signal
   * aborts, or when the loop is left.
   *
   * @example
   * ```ts
   * for await (const { tag, phase } of server.models.progress()) console.log(tag, phase)
   * ```
   */
  progress(options?: { signal?: AbortSignal }): AsyncIterable<LoadProgress>
  /**
   * Pauses the load of the tag for everyone who waits for it, whichever tab or request started it.
   * They get the error `load_paused`, which clients do not retry. Bytes that were downloaded stay
   * stored, and the next `load` or request resumes the download. A loaded model stays in memory.
   *
   * @throws InoriginError `not_found` for an unknown tag.
   */
  pause(tag: Tag): Promise<void>
  /**
   * Cancels the load of the tag like {@link Models.pause}, and deletes the bytes of an unfinished
   * download that no other tag uses. Complete downloads stay stored.
   *
   * @throws InoriginError `not_found` for an unknown tag.
   */
  cancel(tag: Tag): Promise<void>
  /**
   * Frees the memory of the tag, or cancels its load for everyone who waits for it. Stored files
   * stay.
   *
   * @throws InoriginError `not_found` for an unknown tag.
   */
  unload(tag: Tag): Promise<void>
  /** Deletes the tag's files, like {@link ModelStorage.remove}. */
  remove(tag: Tag): Promise<void>
}

/** Options of {@link ModelStorage.import}. */
export interface ImportOptions extends TaskOptions<ImportProgress> {
  /** Display name of an unlisted tag. Default: the name of its file or folder, or the tag. */
  name?: string
  /** Names of inputs that stay tensors although they look like images; for unlisted tags only. */
  tensors?: readonly string[]
}

/** Options of {@link ModelStorage.repair}. */
export type RepairOptions = TaskOptions<RepairProgress>

/**
 * The files of models and predictors on this device, shared by all tabs of the origin.
 *
 * To pause a download, abort the signal that it was started with, or call
 * `server.models.pause(tag)` in any tab. Its bytes stay stored, and `server.models.load(tag)`
 * resumes it, even after a reload. `server.models.cancel(tag)` also deletes its bytes.
 */
export interface ModelStorage {
  /** Resolves with the bytes in use and the quota. */
  usage(): Promise<StorageUsage>
  /** Resolves with the stored tags, the least recently used first. */
  list(): Promise<StoredTag[]>
  /** Resolves with the stored files, the least recently used first. Tags may share a file. */
  resources(): Promise<StoredResource[]>
  /**
   * Resolves with the files that let the app start without a network; see `offline` of `serve()`.
   * They are deleted if a model needs their space.
   */
  assets(): Promise<StoredAsset[]>
  /** Deletes those files, to free space. They are kept again when they are next used. */
  removeAssets(): Promise<void>
  /**
   * Pins the tag: its current and future files are not evicted when another download needs space.
   *
   * @throws InoriginError `not_found` for a tag that is neither listed nor stored.
   */
  pin(tag: Tag): Promise<void>
  /** Unpins the tag: its files may be evicted again. */
  unpin(tag: Tag): Promise<void>
  /**
   * Unloads the tag and deletes the files that no other tag uses, even if the tag is pinned. A
   * running download of the tag is canceled, and its bytes are deleted too.
   *
   * @throws InoriginError `not_found` for a tag that is neither listed nor stored.
   */
  remove(tag: Tag): Promise<void>
  /**
   * Unloads everything and deletes all files, those of {@link ModelStorage.assets} too, pins and
   * background responses. Measurements of this device stay.
   */
  clear(): Promise<void>
  /** Ends and deletes all background responses, of all API keys. */
  clearResponses(): Promise<void>
  /**
   * Asks the browser to keep the stored data until the user clears it. Some browsers ask the user.
   * Resolves with `true` if the browser agrees.
   */
  persist(): Promise<boolean>
  /**
   * Reads all stored files of the tag and downloads lost or damaged parts again. Resolves with the
   * number of damaged bytes, 0 if there are none. A failed load checks its files by itself.
   *
   * @throws InoriginError `not_found` for a tag that is neither listed nor stored.
   */
  repair(tag: Tag, options?: RepairOptions): Promise<number>
  /**
   * Stores the user's files as the files of the tag, without network access. Pass the files of a
   * file input, or the handle of a folder. Files are recognized by their content, not by their
   * name, and verified like downloads. If the tag's repository on a hub was not looked up yet, a
   * folder in the repository's layout replaces the look-up.
   *
   * A tag that no catalog lists becomes the user's own model on this device. It is made from an
   * ONNX graph with its weights, from a GGUF file or all parts of a split one, or from a model
   * folder exported for the web or for MLC. The
   * signature of an ONNX graph is drafted as by `inorigin add`; check the `notes`. The tag is
   * listed like all others and stays after reloads. It is pinned, because its files cannot be
   * downloaded. Another import replaces it, and {@link ModelStorage.remove} deletes it.
   *
   * @example
   * ```ts
   * await server.storage.import('@onnx-community/qwen3-0.6b', await showDirectoryPicker())
   * const { notes } = await server.storage.import('@me/model', input.files ?? [])
   * ```
   * @throws InoriginError `invalid_request` if none of the files belongs to the tag, or if they are
   * not a supported model; `unavailable` if they do not fit into the storage, or if this device
   * cannot run them.
   */
  import(
    tag: Tag,
    files: Iterable<File> | FileSystemDirectoryHandle,
    options?: ImportOptions,
  ): Promise<Imported>
}

/** A predictor's catalog entry with its signature, and a method to run it. */
export interface PredictorHandle<Name extends Tag = Tag> extends Predictor {
  /** Runs this predictor, like {@link Server.predict} with its tag. */
  predict(
    inputs: InputsOf<Name>,
    options?: PredictOptions,
  ): Promise<PredictionResult<OutputsOf<Name>>>
}

/**
 * Predictions that follow each other, such as those of the frames of a stream. It carries the
 * states that the predictor's catalog entry declares, and the sound that fills no window yet. They
 * are in the page, so they survive the host. Predictions run in the order of the calls.
 */
export interface Session<Name extends Tag = Tag> extends Disposable {
  /**
   * Runs the predictor, like {@link Server.predict}. Inputs that are states may be left out, and the
   * outputs have no states. A prediction that fails leaves the state of the one before.
   */
  predict(
    inputs: Partial<InputsOf<Name>>,
    options?: TaskOptions,
  ): Promise<PredictionResult<OutputsOf<Name>>>
  /** Starts over with the next prediction. */
  reset(): void
  /** Frees the state, and rejects predictions that wait with `aborted`. */
  close(): void
}

/** This page's origin as an inference server. `using server = await serve()` closes it later. */
export interface Server extends Disposable {
  /**
   * Answers requests to `/v1` without the service worker, for SDKs that accept a `fetch` option and
   * for pages without a service worker. It passes all other requests to the browser's own `fetch`.
   */
  readonly fetch: typeof fetch
  /** The models and predictors of the catalog. */
  readonly models: Models
  /** The files of models and predictors on this device. */
  readonly storage: ModelStorage
  /**
   * Stores the user's files as a model of the user's own, like {@link ModelStorage.import}. Its tag
   * is `@me/` with the name of the file or folder, such as `@me/smollm2-135m.q4_1` for
   * `SmolLM2-135M.Q4_1.gguf`. Another import of that name replaces it.
   *
   * @example
   * ```ts
   * const { tag } = await server.import(file)
   * ```
   * @throws InoriginError as {@link ModelStorage.import} does.
   */
  import(
    files: File | Iterable<File> | FileSystemDirectoryHandle,
    options?: ImportOptions,
  ): Promise<Imported>
  /**
   * Runs a predictor, and loads it first if necessary. Pass the inputs by name:
   *
   * - single values: a number, bigint, boolean or string, or the name or value of an enumeration;
   * - tensors: an array, a typed array or `{ data, shape }`;
   * - images: `ImageData`, `ImageBitmap`, `Blob`, `VideoFrame`, a canvas, or an image or video
   *   element; an array of them if the model accepts several;
   * - lists and dicts: an array or an object;
   * - binary data: bytes.
   *
   * The inputs are not consumed: bitmaps and frames stay open.
   *
   * @example
   * ```ts
   * const { outputs } = await server.predict('@inorigin/digits', { image: canvas })
   * ```
   * @throws InoriginError `invalid_request` that names the input that does not match the signature;
   * `not_found` for an unknown tag; `aborted` when the signal aborts.
   */
  predict<Name extends TypedTag>(
    tag: Name,
    inputs: InputsOf<Name>,
    options?: PredictOptions,
  ): Promise<PredictionResult<OutputsOf<Name>>>
  /**
   * Resolves with a session, whose predictions continue each other. It loads nothing yet.
   *
   * @example
   * ```ts
   * const session = await server.session('@me/vad')
   * for await (const input of chunks) console.log((await session.predict({ input })).outputs)
   * ```
   * @throws InoriginError `not_found` for an unknown tag, and for the tag of a language model.
   */
  session<Name extends TypedTag>(
    tag: Name,
    options?: Pick<PredictOptions, 'configuration'>,
  ): Promise<Session<Name>>
  /**
   * Resolves with a handle of one predictor, with its signature. It downloads nothing.
   *
   * @throws InoriginError `not_found` for an unknown tag, and for the tag of a language model.
   */
  predictor<Name extends TypedTag>(tag: Name): Promise<PredictorHandle<Name>>
  /**
   * Resolves with the implementation of the tag that this device uses, with the reasons for and
   * against each implementation and their measurements. It loads nothing, but waits for a running
   * comparison.
   *
   * @throws InoriginError `not_found` for an unknown tag.
   */
  explain(tag: Tag, options?: { signal?: AbortSignal }): Promise<Explanation>
  /**
   * Yields what the host does, for logs: requests of all tabs, choices, loads and failures. Events
   * contain tags, times and error codes, but no prompts, completions, inputs or outputs. Requests
   * with an invalid body do not reach the host, and neither do repeated calls of `predict`, which
   * the page sends directly to the predictor's worker. It ends when the signal aborts, or when the
   * loop is left.
   *
   * @example
   * ```ts
   * for await (const event of server.trace()) console.debug(event)
   * ```
   */
  trace(options?: { signal?: AbortSignal }): AsyncIterable<TraceEvent>
  /**
   * Lends this tab to programs outside the browser, by the command `inorigin bridge` at that URL,
   * such as `http://127.0.0.1:11435`. Ask the user first. Resolves when the command accepted the
   * tab. The connection is opened again after its end only with the option `reconnect`.
   *
   * @throws InoriginError `bridge_unreachable` if nothing answers at the URL; `bridge_refused` for a
   * wrong token or another version of the command.
   */
  bridge(url: string | URL, options: BridgeOptions): Promise<Bridge>
  /** Base URL for OpenAI-style clients. It ends in `/v1`. */
  readonly baseURL: string
  /** Base URL for Anthropic-style clients. It does not end in `/v1`. */
  readonly origin: string
  /**
   * `true` while the service worker answers this page's `fetch('/v1/...')`. Otherwise only
   * {@link Server.fetch} answers. The page loses its service worker when the site's data are
   * cleared, or in a crash during an update; see `onControlChange` of `serve()`.
   */
  readonly controlled: boolean
  /** Names of the options in which this tab differs from the hosting tab, whose options apply. */
  readonly differences: readonly string[]
  /** Stops hosting in this tab. Another tab takes over. The service worker stays registered. */
  close(): void
}

// Names of the options that the methods of the server handle take. The types keep them complete.

export const SIGNAL_ONLY: OptionNames<{ signal?: AbortSignal }> = { signal: true }
export const CONFIGURATION_ONLY: OptionNames<Pick<PredictOptions, 'configuration'>> = {
  configuration: true,
}
export const TASK_OPTIONS: OptionNames<TaskOptions> = { signal: true, onProgress: true }
export const LOAD_OPTIONS: OptionNames<LoadOptions> = { ...TASK_OPTIONS, retryCrashed: true }
export const PREDICT_OPTIONS: OptionNames<PredictOptions> = {
  ...TASK_OPTIONS,
  configuration: true,
  onText: true,
}
export const BRIDGE_OPTIONS: OptionNames<BridgeOptions> = {
  token: true,
  reconnect: true,
  onChange: true,
  signal: true,
}
export const REPAIR_OPTIONS: OptionNames<RepairOptions> = { ...TASK_OPTIONS }
export const IMPORT_OPTIONS: OptionNames<ImportOptions> = {
  ...REPAIR_OPTIONS,
  name: true,
  tensors: true,
}
