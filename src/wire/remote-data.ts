/** Bytes inside of data URLs, which is how values travel in the bodies of predictions. */
import { refuse } from '../values/refuse.ts'
import { fromBase64, toBase64 } from './base64.ts'

/** The bytes of a value and what they are said to be, such as `image/png`; empty when nothing is said. */
export interface DataFile {
  mime: string
  bytes: Uint8Array<ArrayBuffer>
}

/** Characters that the word base64 and the spaces before it may take. */
const MAX_ENCODING_CHARACTERS = 32

/** Throws `invalid_request` that names `path` for anything but a data URL in base64. */
export function readDataUrl(url: unknown, path: string): DataFile {
  if (typeof url !== 'string') refuse(path, 'must be a data URL.')
  if (!/^data:/i.test(url)) {
    const scheme = /^[a-z][a-z0-9+.-]{0,30}:/i.exec(url)?.[0]
    const what = scheme ? `is a URL that begins with ${scheme}` : 'is no URL'
    refuse(path, `${what}; nothing is fetched here, so send the bytes themselves as a data URL.`)
  }
  const comma = url.indexOf(',')
  const head = url.slice('data:'.length, Math.max(comma, 0))
  if (comma < 0 || !/;\s*base64$/i.test(head.slice(-MAX_ENCODING_CHARACTERS)))
    refuse(path, 'must be a data URL in base64.')
  const mime = head.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return { mime, bytes: bytesOf(url.slice(comma + 1), path) }
}

function bytesOf(text: string, path: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(text)
  } catch (cause) {
    return refuse(path, 'is not valid base64.', cause)
  }
}

export const toDataUrl = (mime: string, bytes: Uint8Array): string =>
  `data:${mime};base64,${toBase64(bytes)}`

/** Throws `invalid_request` that names `path` for bytes that are no text. */
export function readText({ bytes }: DataFile, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    return refuse(path, 'is not UTF-8.', cause)
  }
}

export const toTextUrl = (mime: string, text: string): string =>
  toDataUrl(mime, new TextEncoder().encode(text))
