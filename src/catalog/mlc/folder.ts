/** Finds a model's files on a server that is no hub, by name, and hashes them while reading. */
import { createSHA256 } from 'hash-wasm'
import { InoriginError } from '../../error.ts'
import { computeDigest } from '../../values/digest.ts'
import { fetchBounded, type Pieces, MAX_SMALL_FILE_BYTES, readAll } from '../hub/bounded-fetch.ts'
import { parseJsonObject, type HubAccess, type HubFile } from '../hub/listing.ts'
import type { Repository } from '../hub/resolve-hub.ts'
import type { Resource } from '../schema.ts'
import { createCollector, type MlcAccess } from './file-sink.ts'
import {
  CONFIG_FILE,
  WEIGHT_LIST_FILES,
  MANIFEST_FILE,
  parseShards,
  TOKENIZER_FILES,
  toMlcResourceType,
} from './model-files.ts'

/** Files of a model and their download URLs. */
export interface LocatedModel extends Omit<Repository, 'revision'> {
  /** Commit hash; `null` on a server that is no hub. */
  revision: string | null
  urlOf(file: HubFile): string
}

/** File that was read. */
interface FetchedFile {
  bytes: Uint8Array<ArrayBuffer>
  sha256: string
}

/** Maximum length in bytes of a file of weights without a length in its list. */
const MAX_SHARD_BYTES = 4 * 2 ** 30

/**
 * Opens the folder at the URL. A URL without `resolve/<revision>/` is tried with `resolve/main/`
 * first, as in WebLLM, and then unchanged. Rejects with `unavailable` if there is no model, and
 * with `aborted`.
 */
export async function openFolder(model: string, access: MlcAccess): Promise<LocatedModel> {
  const bases = /\/resolve\/[^/]+\/$/.test(model) ? [model] : [`${model}resolve/main/`, model]
  for (const base of bases) {
    const config = await fetchSmallFile(new URL(CONFIG_FILE, base).href, access)
    if (config && parseJsonObject(config.bytes)) return readFolder(base, config, access)
  }
  const what = `There is no ${CONFIG_FILE} at ${bases.join(' or ')}, so no model compiled by MLC`
  throw new InoriginError('unavailable', `${what}. Correct the catalog entry, or the server.`, {
    code: 'hub_unfit',
  })
}

async function readFolder(
  base: string,
  config: FetchedFile,
  access: MlcAccess,
): Promise<LocatedModel> {
  const small = new Map<string, FetchedFile>([[CONFIG_FILE, config]])
  for (const path of [...TOKENIZER_FILES, MANIFEST_FILE, ...WEIGHT_LIST_FILES]) {
    const file = await fetchSmallFile(toUrl(base, path), access)
    if (file) small.set(path, file)
    // A model has one list of weights, under one of the names.
    if (file && WEIGHT_LIST_FILES.includes(path)) break
  }
  const list = WEIGHT_LIST_FILES.map((path) => small.get(path)).find((file) => file !== undefined)
  const shards = (list && parseShards(parseJsonObject(list.bytes))) ?? []
  const hashes = new Map(Array.from(small, ([path, { sha256 }]) => [path, sha256]))
  const files = Array.from(small, ([path, { bytes }]) => toHubFile(path, bytes.length))
  const { sink } = access
  const resourceOf = (path: string, bytes: number): Resource => ({
    type: toMlcResourceType(path),
    url: toUrl(base, path),
    name: path,
    bytes,
    sha256: hashes.get(path) ?? '',
  })
  await sink?.reserve(sum([...files, ...shards].map(({ bytes }) => bytes ?? 0)))
  for (const { path, bytes } of shards) {
    const found = await fetchWeights(toUrl(base, path), bytes, access)
    if (!found) continue
    hashes.set(path, found.sha256)
    files.push(toHubFile(path, found.bytes))
    if (found.content) await sink?.store(resourceOf(path, found.bytes), found.content)
  }
  for (const [path, { bytes }] of small) {
    sink?.onBytes(bytes.length)
    await sink?.store(resourceOf(path, bytes.length), new Blob([bytes]))
  }
  return {
    revision: null,
    created: undefined,
    files,
    urlOf: ({ path }) => toUrl(base, path),
    sha256: async ({ path }) => hashes.get(path) ?? '',
    read: async ({ path }) => small.get(path)?.bytes ?? new Uint8Array(),
  }
}

const toHubFile = (path: string, bytes: number): HubFile => ({
  path,
  bytes,
  sha256: null,
  blobId: '',
})

const toUrl = (base: string, path: string): string =>
  new URL(path.split('/').map(encodeURIComponent).join('/'), base).href

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Fetches a small file; `null` if there is none. Rejects with `unavailable` and `aborted`. */
export async function fetchSmallFile(url: string, access: HubAccess): Promise<FetchedFile | null> {
  return fetchOptional(url, access, MAX_SMALL_FILE_BYTES, async (pieces) => {
    const bytes = await readAll(pieces)
    return { bytes, sha256: await computeDigest('SHA-256', bytes) }
  })
}

/** Fetches and hashes a file of any length. Returns its content only if there is a sink. */
function fetchWeights(
  url: string,
  maxBytes: number | undefined,
  access: MlcAccess,
): Promise<{ bytes: number; sha256: string; content: Blob | undefined } | null> {
  return fetchOptional(url, access, maxBytes ?? MAX_SHARD_BYTES, async (pieces) => {
    const hash = (await createSHA256()).init()
    const collector = access.sink && createCollector()
    let bytes = 0
    for await (const piece of pieces) {
      hash.update(piece)
      collector?.add(piece)
      bytes += piece.length
      access.sink?.onBytes(piece.length)
    }
    return { bytes, sha256: hash.digest(), content: collector?.end() }
  })
}

async function fetchOptional<T>(
  url: string,
  { signal }: HubAccess,
  maxBytes: number,
  read: (pieces: Pieces) => Promise<T>,
): Promise<T | null> {
  try {
    return await fetchBounded(
      url,
      { signal, maxBytes },
      async ({ ok, status, headers }, pieces) => {
        // Servers of single-page apps send their index page for missing files.
        const isPage = /^text\/html\b/i.test(headers.get('content-type') ?? '')
        if (ok && !isPage) return read(pieces)
        if (ok || [403, 404, 410].includes(status)) return null
        throw unreachableError(url, `the server returned ${status}`)
      },
    )
  } catch (thrown) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    throw thrown instanceof InoriginError ? thrown : unreachableError(url, String(thrown), thrown)
  }
}

function unreachableError(url: string, why: string, cause?: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `${url} could not be looked up: ${why}. Try again later.`,
    {
      code: 'hub_unreachable',
      retryAfter: 5,
      cause,
    },
  )
}
