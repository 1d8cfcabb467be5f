/** Files that hosts refuse for their size lie there in parts: which part holds a byte, and where it is. */
import type { WantedResource } from './db.ts'

/** A file that holds `bytes` of a resource, from `start` on. */
export interface Part {
  url: string
  start: number
  bytes: number
}

/** The part that holds that byte; what lies in one piece is its only part. */
export function partAt({ url, bytes, partBytes }: WantedResource, position: number): Part {
  if (partBytes === undefined) return { url, start: 0, bytes }
  const index = Math.floor(position / partBytes)
  const start = index * partBytes
  return { url: partUrl(url, index), start, bytes: Math.min(partBytes, bytes - start) }
}

/** `https://host/model.onnx.2?v=1` of `https://host/model.onnx?v=1`. */
function partUrl(url: string, index: number): string {
  const part = new URL(url)
  part.pathname += `.${index}`
  return part.href
}
