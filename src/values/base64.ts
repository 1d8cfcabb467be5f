/** Converts bytes to base64 and back. */

/** Bytes per call of `String.fromCharCode`: JavaScript engines limit the number of arguments. */
const STEP_BYTES = 2 ** 15

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(at, at + STEP_BYTES))
  }
  return btoa(binary)
}

/** Decodes base64. Throws the error of `atob` when the text is not valid. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at)
  return bytes
}
