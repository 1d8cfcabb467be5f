/** An id no one can guess, such as `msg_2f9c...`: the prefix and 24 hexadecimal digits. */
export function id(prefix: string): string {
  // Not randomUUID: that one is missing on pages served over plain http.
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Now, in whole seconds. */
export function seconds(): number {
  return Math.floor(Date.now() / 1000)
}
