/** Reads and writes the data URLs that hold values in the bodies of predictions. */
import { throwInvalidInput } from '../../values/input-errors.ts'
import { fromBase64, toBase64 } from '../../values/base64.ts'

/** Bytes of a value, and their media type such as `image/png`, empty if the URL has none. */
export interface DataFile {
  mime: string
  bytes: Uint8Array<ArrayBuffer>
}

/** Largest number of characters of the word base64 and the spaces before it. */
const MAX_ENCODING_CHARACTERS = 32

/** Decodes a base64 data URL. Throws `invalid_request` that names `path` for anything else. */
export function decodeDataUrl(url: unknown, path: string): DataFile {
  if (typeof url !== 'string') throwInvalidInput(path, 'must be a data URL.')
  if (!/^data:/i.test(url)) {
    const scheme = /^[a-z][a-z0-9+.-]{0,30}:/i.exec(url)?.[0]
    const what = scheme ? `is a URL that begins with ${scheme}` : 'is not a URL'
    throwInvalidInput(path, `${what}; only data URLs are supported, since nothing is fetched.`)
  }
  const comma = url.indexOf(',')
  const head = url.slice('data:'.length, Math.max(comma, 0))
  if (comma < 0 || !/;\s*base64$/i.test(head.slice(-MAX_ENCODING_CHARACTERS)))
    throwInvalidInput(path, 'must be a data URL in base64.')
  const mime = head.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return { mime, bytes: decodeBase64(url.slice(comma + 1), path) }
}

function decodeBase64(text: string, path: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(text)
  } catch (cause) {
    return throwInvalidInput(path, 'is not valid base64.', cause)
  }
}

/** Encodes bytes as a base64 data URL. */
export const encodeDataUrl = (mime: string, bytes: Uint8Array): string =>
  `data:${mime};base64,${toBase64(bytes)}`

/** Decodes UTF-8. Throws `invalid_request` that names `path` if the bytes are not valid. */
export function decodeText({ bytes }: DataFile, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    return throwInvalidInput(path, 'is not UTF-8.', cause)
  }
}

/** Encodes text as a base64 data URL. */
export const encodeTextUrl = (mime: string, text: string): string =>
  encodeDataUrl(mime, new TextEncoder().encode(text))
