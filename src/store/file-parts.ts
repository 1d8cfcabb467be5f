/** Locates bytes of files that are split into parts because a host limits the file size. */
import type { WantedResource } from './db.ts'

/** File that holds `bytes` of a resource, from offset `start` on. */
export interface FilePart {
  url: string
  start: number
  bytes: number
}

/** Returns the part that holds the byte at `position`. An unsplit file is its only part. */
export function getPartAt({ url, bytes, partBytes }: WantedResource, position: number): FilePart {
  if (partBytes === undefined) return { url, start: 0, bytes }
  const index = Math.floor(position / partBytes)
  const start = index * partBytes
  return { url: toPartUrl(url, index), start, bytes: Math.min(partBytes, bytes - start) }
}

/** Returns `https://host/model.onnx.2?v=1` for index 2 of `https://host/model.onnx?v=1`. */
function toPartUrl(url: string, index: number): string {
  const part = new URL(url)
  part.pathname += `.${index}`
  return part.href
}
