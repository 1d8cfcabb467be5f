/**
 * The database. Resources are kept once per content (sha256), in chunks; only the host worker
 * writes, the service worker reads resources.
 */
import type { DBSchema } from 'idb'
import type { ResourceType, Tag } from '../types/index.ts'

/** Raised with a step in `migrations.ts` whenever the stores below change. */
export const DB_VERSION = 3

/** Bytes of every chunk but a resource's last. */
export const CHUNK_BYTES = 16 * 1024 * 1024

/** A file to be had. What a catalog calls a resource, its URL made absolute. */
export interface WantedResource {
  type: ResourceType
  /** Absolute, http or https; `import:` and its name where it was imported and nobody else has it. */
  url: string
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: string
  bytes: number
  sha256: string
  /** Hashes of consecutive chunks; with them a damaged chunk is fetched again alone. */
  chunks?: readonly string[]
  /** It lies in parts of this many bytes, the last one shorter, at `url` with `.0`, `.1` ... behind. */
  partBytes?: number
}

/** What is known of a resource; its bytes are in `chunks`. */
export interface ResourceRecord {
  sha256: string
  type: ResourceType
  /** The name it was first asked for under. */
  name: string
  /** Where the bytes come from. */
  url: string
  bytes: number
  /** Bytes of every chunk but the last, as this resource was cut. */
  chunkBytes: number
  /** The server's tag of the version being downloaded; a change means starting over. */
  etag: string | null
  /** The sha256 of each chunk that is here, in order; `null` for one that is not. */
  chunks: (string | null)[]
  /** Nothing is readable before the whole hash is right. */
  verified: boolean
  /** The download whose turn it is; chunks of any other are refused. `null` once verified. */
  writer: string | null
  /** Milliseconds since 1970; the least recently used goes first when room is needed. */
  lastUsed: number
  /** What it was stored for, and used by since. */
  tags: Tag[]
}

/** Stands for the hash of a chunk that a version stored which noted none. */
export const UNNOTED = ''

/** A tag whose resources are never evicted, whether they are here yet or not. */
export interface PinRecord {
  tag: Tag
  /** RFC 3339. */
  since: string
}

/** What the user's own files are, as a catalog would tell it. */
export interface EntryRecord {
  tag: Tag
  /** The catalog's entry for it. */
  entry: unknown
}

/** Which implementation an asker was given, so that it can be given again. */
export interface PredictionRecord {
  id: string
  tag: Tag
  clientId: string
  /** As it was asked with; empty when none was, because `null` cannot be part of an index. */
  configurationId: string
  deviceId: string
  /** The opaque token of the choice. */
  configuration: string
  /** Id of the implementation within the tag. */
  implementation: string
  resources: { type: ResourceType; name: string; sha256: string }[]
  /** The catalog's entry of then with that implementation alone; first versions kept none. */
  entry?: unknown
  /** It was asked for by the id of another one, so the asker's own choice is not this. */
  isPinned?: boolean
  /** RFC 3339. */
  created: string
  /** Milliseconds since 1970; absent: never since it was created. */
  lastUsed?: number
}

export interface Schema extends DBSchema {
  /** By sha256. */
  resources: { key: string; value: ResourceRecord; indexes: { lastUsed: number } }
  /** By tag. */
  pins: { key: Tag; value: PinRecord }
  /** By tag: those that were imported and that no catalog lists. */
  entries: { key: Tag; value: EntryRecord }
  /** By [sha256, index]. An `ArrayBuffer` where a browser cannot keep Blobs. */
  chunks: { key: [sha256: string, index: number]; value: Blob | ArrayBuffer }
  /** By id. */
  predictions: {
    key: string
    value: PredictionRecord
    indexes: {
      asker: [tag: string, clientId: string, configurationId: string]
      configuration: string
    }
  }
  /** What was learnt about this device, by subject. */
  device: { key: string; value: unknown }
}
