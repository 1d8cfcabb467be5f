/** Returns an unguessable id such as `msg_2f9c...`: the prefix and 24 hexadecimal digits. */
export function id(prefix: string): string {
  // `randomUUID` does not exist on pages that are served over plain http.
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Returns the current time in whole seconds since 1970. */
export function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
