import type { ResourceType } from './predictor.ts'
import type { Tag } from './model.ts'

/** What is stored, and what may be. */
export interface StorageUsage {
  /** Bytes of models and predictors, those of unfinished downloads included. */
  bytes: number
  /** Bytes of all that this origin stores, as the browser estimates them; `null` where it does not. */
  originBytes: number | null
  /**
   * Bytes that the browser says it may store; `null` where it does not. Some say the same to every
   * site: what counts is asked before each download.
   */
  quotaBytes: number | null
  /** Whether the browser keeps it all until the user clears it; else it may when the disk is full. */
  persisted: boolean
}

/** What is stored of a tag. */
export interface StoredTag {
  tag: Tag
  /** `partial`: some of it is missing, a later load fetches that alone. */
  status: 'stored' | 'partial'
  /** Bytes of its resources that are stored. */
  bytes: number
  /** Those of them that removing it frees, because no other tag uses them. */
  ownBytes: number
  /** Never evicted to make room. */
  pinned: boolean
  /** It is loaded, or on its way: not evicted either. */
  inUse: boolean
  /** RFC 3339. */
  lastUsed: string
  resources: StoredResource[]
}

/** A stored file; tags that use the same share it. */
export interface StoredResource {
  sha256: string
  type: ResourceType
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: string
  status: 'stored' | 'partial'
  /** Its length. */
  bytes: number
  /** Bytes of it that are stored. */
  storedBytes: number
  /** The tags that it was stored for, or used by since. */
  tags: Tag[]
  pinned: boolean
  inUse: boolean
  /** RFC 3339. */
  lastUsed: string
}

/** How far files are on their way from the user's disk into the store. */
export interface ImportProgress {
  tag: Tag
  /**
   * `check` reads files to tell what they are, again for what it found in them; `store` writes those that
   * belong to the tag.
   */
  phase: 'check' | 'store'
  /** Bytes of the phase that are done. */
  loadedBytes: number
  totalBytes: number
  bytesPerSecond: number
  /** Seconds that the rest of the phase takes at that rate; `null` while that cannot be told. */
  remainingSeconds: number | null
}

/** How far a repair is. */
export interface RepairProgress extends Omit<ImportProgress, 'phase'> {
  /** `check` reads what is stored, `download` fetches what was lost of it. */
  phase: 'check' | 'download'
}

/** A file that the user chose, with its path within the folder that was chosen. */
export interface ChosenFile {
  path: string
  file: File
}

/** What is wished of files that no catalog tells of. */
export interface ImportWishes {
  /** Default: what the file, the folder or the tag is called. */
  name?: string | undefined
  /** Inputs that stay tensors although they look like images. */
  tensors?: readonly string[] | undefined
}

/** What became of the files that were imported. */
export interface Imported {
  tag: Tag
  /** Paths of the files that are stored now. */
  files: string[]
  /** Paths of those that are no part of the tag, or that this device has no use for. */
  ignored: string[]
  /** Bytes that were written; what was here before was not. */
  bytes: number
  /** All that this device uses of the tag is here; else loading it downloads the rest. */
  complete: boolean
  /** What to look at where the signature was drafted, a sentence each. */
  notes: string[]
}
