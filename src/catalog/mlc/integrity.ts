/** Checks small files against the hashes in a WebLLM record. */
import { InoriginError } from '../../error.ts'
import type { MlcRecord } from './record-schema.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** WebCrypto's algorithm names, by WebLLM's names. */
const ALGORITHMS: Readonly<Record<string, string>> = {
  sha256: 'SHA-256',
  sha384: 'SHA-384',
  sha512: 'SHA-512',
}

/**
 * Compares a file with its hash in the record, if any. `file` is `config`, `model_lib` or the name
 * of a tokenizer file. Rejects with `unavailable` on a mismatch. With `onFailure: 'warn'`, logs a
 * warning instead.
 */
export async function assertIntegrity(
  { model_id, integrity = {} }: MlcRecord,
  file: string,
  content: Bytes | (() => Promise<Bytes>),
): Promise<void> {
  const { config, model_lib, tokenizer = {}, onFailure } = integrity
  const named: Readonly<Record<string, string | undefined>> = { config, model_lib }
  const expected = Object.hasOwn(named, file) ? named[file] : tokenizer[file]
  const algorithm = ALGORITHMS[expected?.slice(0, 6) ?? '']
  if (expected === undefined || algorithm === undefined) return
  const bytes = typeof content === 'function' ? await content() : content
  const digest = new Uint8Array(await crypto.subtle.digest(algorithm, bytes))
  const got = `${expected.slice(0, 6)}-${btoa(String.fromCharCode(...digest))}`
  if (got === expected) return
  const what = `The ${file} of ${model_id} is not the file that its \`integrity\` describes`
  const message = `${what}: it should hash to ${expected} and hashes to ${got}.`
  if (onFailure === 'warn') return console.warn(message)
  throw new InoriginError('unavailable', `${message} Correct the catalog entry, or the file.`, {
    code: 'hash_mismatch',
    details: { expected, got },
  })
}
