/** What bytes hash to, written as catalogs and hubs write it. */

/** The digest of those bytes, in lower-case hex digits. */
export async function digestOf(
  algorithm: 'SHA-256' | 'SHA-1',
  bytes: BufferSource,
): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(algorithm, bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
