import type { ResourceType, Tag } from './predictor.ts'

/** Storage in use and storage available. */
export interface StorageUsage {
  /** Size in bytes of all stored models and predictors, including unfinished downloads. */
  bytes: number
  /** Size in bytes of the files that let the app start without a network. */
  assetBytes: number
  /** Estimated size in bytes of all background responses, of all API keys. */
  responseBytes: number
  /** Browser's estimate in bytes of everything that this origin stores; `null` if there is none. */
  originBytes: number | null
  /**
   * Quota of this origin in bytes, as the browser reports it; `null` if it does not. Some browsers
   * report the same number to every site, so each download checks the available storage itself.
   */
  quotaBytes: number | null
  /** `true` if the browser keeps the data until the user clears it, even on a full disk. */
  persisted: boolean
}

/**
 * A file that lets the app start without a network: a script or runtime of the library, its catalog
 * or list of files, or a copy of the app's catalog.
 */
export interface StoredAsset {
  /** URL of the file. */
  url: string
  /** Size of the file in bytes. */
  bytes: number
}

/** The stored files of a tag. */
export interface StoredTag {
  tag: Tag
  /** `partial`: some of the files are missing, and the next load downloads only those. */
  status: 'stored' | 'partial'
  /**
   * `true` if the catalog lists other files for the tag than those that were stored, and has no
   * implementation whose files are complete here. The next load downloads the new version.
   */
  outdated: boolean
  /** Number of bytes of its resources that are stored. */
  bytes: number
  /** Number of these bytes that removing the tag frees, because no other tag uses them. */
  ownBytes: number
  /** `true` if the tag is protected from eviction. */
  pinned: boolean
  /** `true` if the tag is loaded or loading. Its files are not evicted then either. */
  inUse: boolean
  /** Time of the last use, in RFC 3339. */
  lastUsed: string
  resources: StoredResource[]
}

/** A stored file. Tags that use the same file share it. */
export interface StoredResource {
  /** SHA-256 digest of the file. */
  sha256: string
  type: ResourceType
  /** Path of the file within the implementation, such as `onnx/model.onnx`. */
  name: string
  status: 'stored' | 'partial'
  /** Size of the file in bytes. */
  bytes: number
  /** Number of its bytes that are stored. */
  storedBytes: number
  /** Tags that the file was stored for, and tags that have used it since. */
  tags: Tag[]
  /** `true` if one of the tags is pinned. */
  pinned: boolean
  /** `true` if the file is being used or downloaded. */
  inUse: boolean
  /** Time of the last use, in RFC 3339. */
  lastUsed: string
}

/** Progress of an import of the user's files. */
export interface ImportProgress {
  tag: Tag
  /**
   * Phase of the import. `check` reads the files to identify them, if necessary in several passes;
   * `store` writes the files that belong to the tag.
   */
  phase: 'check' | 'store'
  /** Number of bytes processed in this phase. */
  loadedBytes: number
  /** Number of bytes to process in this phase. */
  totalBytes: number
  /** Bytes per second over the last few seconds. */
  bytesPerSecond: number
  /** Estimated time in seconds until the phase ends; `null` while there is no estimate. */
  remainingSeconds: number | null
}

/** Progress of a repair. */
export interface RepairProgress extends Omit<ImportProgress, 'phase'> {
  /** Phase of the repair. `check` reads the stored files, `download` fetches the damaged parts. */
  phase: 'check' | 'download'
}

/** A file that the user chose, with its path in the chosen folder. */
export interface ChosenFile {
  path: string
  file: File
}

/** Options for importing files that no catalog describes. */
export interface ImportWishes {
  /** Display name. Default: the name of the file or folder, or the tag. */
  name?: string | undefined
  /** Names of inputs that stay tensors although they look like images. */
  tensors?: readonly string[] | undefined
}

/** Result of an import. */
export interface Imported {
  tag: Tag
  /** Paths of the files that are stored now. */
  files: string[]
  /** Paths of the files that do not belong to the tag, or that this device does not need. */
  ignored: string[]
  /** Number of bytes that were written. Bytes that were already stored do not count. */
  bytes: number
  /** `true` if all files for this device are stored. The next load downloads the rest. */
  complete: boolean
  /** Hints for checking a drafted signature, one sentence each. */
  notes: string[]
}

/** The file `files.json` of the folder `inorigin/`, which `inorigin init` writes. */
export interface FileList {
  written_by: 'inorigin init'
  files: ListedFile[]
}

/** A file of that folder. */
export interface ListedFile {
  /** Path relative to the folder, with forward slashes. */
  name: string
  /** SHA-256 digest of the file. */
  sha256: string
  /**
   * `true` for a file that is kept for offline use before it is used: a script, or the catalog. The
   * others are large, and a device needs few of them, so they are kept when they are used.
   */
  precache: boolean
}
