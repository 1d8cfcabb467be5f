/** Bytes that a test and the server it asks both know, and what a catalog would say of them. */
import type { WantedResource } from '../../src/store/db.ts'

/** Always the same bytes for the same seed; every prefix is that of a longer one. */
export function contentOf(seed: number, bytes: number): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(bytes)
  let state = (seed * 2654435761 + 1) >>> 0
  for (let index = 0; index < bytes; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    content[index] = state >>> 24
  }
  return content
}

export async function sha256Of(content: BufferSource): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', content))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The hashes of consecutive pieces. */
export function chunkHashes(
  content: Uint8Array<ArrayBuffer>,
  chunkBytes: number,
): Promise<string[]> {
  const count = Math.ceil(content.length / chunkBytes)
  const pieces = Array.from({ length: count }, (_, index) =>
    content.subarray(index * chunkBytes, (index + 1) * chunkBytes),
  )
  return Promise.all(pieces.map(sha256Of))
}

/** A fault that replaces the good answer to one request. */
export interface Fault {
  /** Bytes of the body after which the connection breaks. */
  cut?: number
  /** Comes again until the next request is for a range: what was sent before the cut arrived. */
  sure?: boolean
  /** Bytes of the body after which the answer ends as if that were all. */
  end?: number
  /** Bytes of the body after which nothing more comes. */
  stall?: number
  /** Sends everything, whatever was asked for. */
  ignoreRange?: boolean
  /** Sends a range up to the end of the file, wherever it was asked to end. */
  ignoreEnd?: boolean
  /** Says this in `content-range`; empty: says nothing. */
  contentRange?: string
  /** Starts the body this many bytes too late. */
  shift?: number
  /** Offset of a byte of the file that is sent wrong. */
  corrupt?: number
  /** Sends this many bytes too many. */
  extra?: number
  html?: boolean
  /** Sends elsewhere, which is here again. */
  redirect?: boolean
  status?: number
  retryAfter?: string
  etag?: string
  /** Milliseconds between two pieces. */
  slow?: number
}

/** A request as the server saw it. */
export interface Seen {
  range: string | null
  status: number
  /** Bytes of the body that were handed to the connection. */
  sent: number
  /** Which of the faults it met. */
  fault: number
}

export interface ServedFile {
  resource: WantedResource
  content: Uint8Array<ArrayBuffer>
  /** The requests for it so far. */
  seen(): Promise<Seen[]>
}

export interface FileOptions {
  bytes: number
  seed?: number
  name?: string
  faults?: readonly Fault[]
  /** Bytes that are sent at once; default 4 KiB. */
  piece?: number
  /** It is there in parts of this size only. */
  partBytes?: number
}

let counter = 0

/** A file of the fault server: each request meets the next of its faults, later ones none. */
export async function fileOn(server: string, options: FileOptions): Promise<ServedFile> {
  const { bytes, seed = ++counter + Date.now(), name = 'model.onnx', faults = [] } = options
  const { piece, partBytes } = options
  const id = crypto.randomUUID()
  const url = new URL(`file/${id}`, server)
  url.searchParams.set('seed', String(seed))
  url.searchParams.set('bytes', String(bytes))
  url.searchParams.set('faults', JSON.stringify(faults))
  if (piece !== undefined) url.searchParams.set('piece', String(piece))
  if (partBytes !== undefined) url.searchParams.set('partBytes', String(partBytes))
  const content = contentOf(seed, bytes)
  return {
    content,
    resource: {
      type: 'onnx',
      url: url.href,
      name,
      bytes,
      sha256: await sha256Of(content),
      partBytes,
    },
    seen: async () => (await fetch(new URL(`seen/${id}`, server))).json() as Promise<Seen[]>,
  }
}
