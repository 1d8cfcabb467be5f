/**
 * Defines the IndexedDB database. Each resource is stored once per content (sha256), in chunks.
 * Only the host worker writes; the service worker reads resources.
 */
import type { DBSchema } from 'idb'
import type { BackgroundEvent, BackgroundResponse, ResourceType, Tag } from '../types/index.ts'

/** Number of bytes of every chunk except the last one of a resource. */
export const CHUNK_BYTES = 16 * 1024 * 1024

/** File to download or import: a resource of a catalog entry, with its URL made absolute. */
export interface WantedResource {
  type: ResourceType
  /** Absolute URL (http or https), or `import:` and the name for a file that only the user has. */
  url: string
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: string
  bytes: number
  sha256: string
  /** Hashes of consecutive chunks. With them, a damaged chunk can be downloaded again alone. */
  chunks?: readonly string[]
  /** Bytes of each part of a file split into `url` + `.0`, `.1`, and so on. The last is shorter. */
  partBytes?: number
}

/** Metadata of a resource. Its bytes are in the store `chunks`. */
export interface ResourceRecord {
  sha256: string
  type: ResourceType
  name: string
  url: string
  bytes: number
  /** Number of bytes of every chunk of this resource except the last one. */
  chunkBytes: number
  /** ETag of the version being downloaded. If it changes, the download starts over. */
  etag: string | null
  /** The sha256 of each chunk in order; `null` for a chunk that is not stored. */
  chunks: (string | null)[]
  /** `true` once the hash of the whole file is verified. Nothing is readable before that. */
  verified: boolean
  /** Id of the download that may write. Chunks of any other are rejected. `null` once verified. */
  writer: string | null
  /** Time of the last use in milliseconds since 1970. Eviction starts with the oldest. */
  lastUsed: number
  /** Tags that the resource was stored for or has been used by. */
  tags: Tag[]
}

/** Placeholder for the hash of a chunk that version 1 stored, which recorded no hashes. */
export const UNKNOWN_DIGEST = ''

/** Tag whose resources are never evicted, including resources that are not stored yet. */
interface PinRecord {
  tag: Tag
  since: string
}

/** Catalog entry of a tag that the user imported. */
export interface EntryRecord {
  tag: Tag
  entry: unknown
}

/** Implementation that a client was given, stored so that it gets the same one again. */
export interface PredictionRecord {
  id: string
  tag: Tag
  clientId: string
  /** Configuration id of the request. Empty if it had none, since an index cannot hold `null`. */
  configurationId: string
  deviceId: string
  /** Opaque token that identifies the choice. */
  configuration: string
  implementation: string
  resources: { type: ResourceType; name: string; sha256: string }[]
  /** Catalog entry of that time with this implementation only. Early versions stored none. */
  entry?: unknown
  /** `true` if the client asked for another prediction's id, so this is not its own choice. */
  isPinned?: boolean
  created: string
  /** Time of the last use in milliseconds since 1970; absent if not used since its creation. */
  lastUsed?: number
}

/** State of a background response. Its request and its events are in `backgroundParts`. */
export interface BackgroundRecord {
  id: string
  /** SHA-256 of the API key; empty if none was sent. */
  owner: string
  created: number
  isFinished: boolean
  /** Estimated size in bytes of all parts. */
  bytes: number
  /** Number of parts, including the request. */
  parts: number
  /** Number of hosts in a row that continued the response and stored no further event of it. */
  idleHosts: number
}

export interface StoreSchema extends DBSchema {
  resources: { key: string; value: ResourceRecord; indexes: { lastUsed: number } }
  pins: { key: Tag; value: PinRecord }
  /** Keyed by tag. Holds the imported tags, which no catalog lists. */
  entries: { key: Tag; value: EntryRecord }
  /** Keyed by [sha256, index]. Holds an `ArrayBuffer` where the browser cannot store Blobs. */
  chunks: { key: [sha256: string, index: number]; value: Blob | ArrayBuffer }
  predictions: {
    key: string
    value: PredictionRecord
    indexes: {
      asker: [tag: string, clientId: string, configurationId: string]
      configuration: string
    }
  }
  background: { key: string; value: BackgroundRecord }
  /** Keyed by [id, index]. The first part is the response, the others are its events. */
  backgroundParts: {
    key: [id: string, index: number]
    value: BackgroundResponse | readonly BackgroundEvent[]
  }
  device: { key: string; value: unknown }
}
