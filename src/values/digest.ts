/** Computes digests in the notation of catalogs and model hubs. */

/** Resolves with the digest of the bytes, in lower-case hex digits. */
export async function computeDigest(
  algorithm: 'SHA-256' | 'SHA-1',
  bytes: BufferSource,
): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(algorithm, bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
