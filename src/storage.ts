/** What `server.storage` does. */
import type {
  ImportProgress, Imported, StorageUsage, StoredResource, StoredTag, Tag,
} from './types/index.ts'

export interface ImportOptions {
  /** Aborting it gives the import up; what was stored stays. */
  signal?: AbortSignal
  /** Bytes, rate and remaining time, several times a second. */
  onProgress?: (progress: ImportProgress) => void
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
  repair(tag: Tag, options?: { signal?: AbortSignal }): Promise<number>
  /**
   * Stores files that the user chose as those of the tag, without the network: files of a file input, or
   * the handle of a folder. They are told by what they hold, whatever they are called, and verified as
   * downloads are. Where a tag names a repository of a hub that was not asked yet, a folder in that
   * layout says itself what the tag consists of.
   *
   * @example
   * ```ts
   * await server.storage.import('@onnx-community/qwen3-0.6b', await showDirectoryPicker())
   * ```
   * @throws InoriginError `not_found` for a tag that the catalog does not list, `invalid_request` when
   * none of the files belongs to it, `unavailable` when they do not fit.
   */
  import(
    tag: Tag,
    files: Iterable<File> | FileSystemDirectoryHandle,
    options?: ImportOptions,
  ): Promise<Imported>
}
