/** The type of `server.storage`: the files of models and predictors on this device. */
import type {
  ImportProgress,
  Imported,
  RepairProgress,
  StorageUsage,
  StoredAsset,
  StoredResource,
  StoredTag,
  Tag,
} from './types/index.ts'

/** Options of {@link ModelStorage.import}. */
export interface ImportOptions {
  /** Signal that cancels the import. Bytes that were stored stay. */
  signal?: AbortSignal
  /**
   * Callback for the progress: phase, bytes, rate and remaining time. It is called several times a
   * second.
   */
  onProgress?: (progress: ImportProgress) => void
  /**
   * Display name of a tag that no catalog lists. Default: the name of its file or folder, or the
   * tag.
   */
  name?: string
  /** Names of inputs that stay tensors although they look like images; for unlisted tags only. */
  tensors?: readonly string[]
}

/** Options of {@link ModelStorage.repair}. */
export interface RepairOptions {
  /** Signal that cancels the repair. Bytes that were downloaded stay stored. */
  signal?: AbortSignal
  /**
   * Callback for the progress: phase, bytes, rate and remaining time. It is called several times a
   * second.
   */
  onProgress?: (progress: RepairProgress) => void
}

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
  /**
   * Resolves with the stored files, the least recently used first. Tags that use the same file
   * share it.
   */
  resources(): Promise<StoredResource[]>
  /**
   * Resolves with the files that let the app start without a network; see `offline` of `serve()`.
   * They are deleted if a model needs their space.
   */
  assets(): Promise<StoredAsset[]>
  /**
   * Deletes those files, for example to free space. They are kept again when they are next used.
   */
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
   * ONNX graph with its weights, or from a model folder exported for the web or for MLC. The
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
