/** A model's files on a server that is no hub: found by their names, hashed by reading them. */
import { createSHA256 } from 'hash-wasm'
import { InoriginError } from '../../error.ts'
import type { HubAccess, HubFile } from '../hub/listing.ts'
import { parse, type Repository } from '../hub/resolve.ts'
import { CONFIG, LISTS, MANIFEST, shardsOf, TOKENIZERS } from './layout.ts'

/** A model's files, and where they can be downloaded. */
export interface Located extends Omit<Repository, 'revision'> {
  /** The commit's hash; `null` where they lie on a server that is no hub. */
  revision: string | null
  urlOf(file: HubFile): string
}

/** A file that was read. */
interface Fetched {
  bytes: Uint8Array<ArrayBuffer>
  sha256: string
}

/** Milliseconds for a server to begin its answer, or to go on with it. */
const PATIENCE = 30_000

/**
 * Opens the folder, at its URL as WebLLM reads it (`resolve/main/` behind, where it has none) or as it
 * stands. Rejects with `unavailable` where there is no model, and with `aborted`.
 */
export async function openFolder(model: string, access: HubAccess): Promise<Located> {
  const bases = /\/resolve\/[^/]+\/$/.test(model) ? [model] : [`${model}resolve/main/`, model]
  for (const base of bases) {
    const config = await fetchFile(new URL(CONFIG, base).href, access)
    if (config && parse(config.bytes)) return readFolder(base, config, access)
  }
  const what = `There is no ${CONFIG} at ${bases.join(' nor at ')}, where a model compiled by MLC has one`
  throw new InoriginError('unavailable', `${what}. Correct the catalog entry, or the server.`, {
    code: 'hub_unfit',
  })
}

async function readFolder(base: string, config: Fetched, access: HubAccess): Promise<Located> {
  const small = new Map<string, Fetched>([[CONFIG, config]])
  for (const path of [...TOKENIZERS, MANIFEST, ...LISTS]) {
    const file = await fetchFile(urlOf(base, path), access)
    if (file) small.set(path, file)
    // Of the names that lists have had, one is enough.
    if (file && LISTS.includes(path)) break
  }
  const list = LISTS.map((path) => small.get(path)).find((file) => file !== undefined)
  const shards = (list && shardsOf(parse(list.bytes))) ?? []
  const hashes = new Map(Array.from(small, ([path, { sha256 }]) => [path, sha256]))
  const files = Array.from(small, ([path, { bytes }]) => fileOf(path, bytes.length))
  for (const { path } of shards) {
    const found = await hashFile(urlOf(base, path), access)
    if (!found) continue
    hashes.set(path, found.sha256)
    files.push(fileOf(path, found.bytes))
  }
  return {
    revision: null,
    created: undefined,
    files,
    urlOf: ({ path }) => urlOf(base, path),
    sha256: async ({ path }) => hashes.get(path) ?? '',
    read: async ({ path }) => small.get(path)?.bytes ?? new Uint8Array(),
  }
}

const fileOf = (path: string, bytes: number): HubFile => ({ path, bytes, sha256: null, blobId: '' })

const urlOf = (base: string, path: string): string =>
  new URL(path.split('/').map(encodeURIComponent).join('/'), base).href

/** A small file, whole; `null` where there is none. Rejects with `unavailable` and `aborted`. */
export async function fetchFile(url: string, access: HubAccess): Promise<Fetched | null> {
  return reading(url, access, async (pieces) => {
    const parts: Uint8Array<ArrayBuffer>[] = []
    for await (const piece of pieces) parts.push(piece)
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer())
    return { bytes, sha256: (await createSHA256()).init().update(bytes).digest() }
  })
}

/** The same of one that need not fit into memory, without its content. */
function hashFile(url: string, access: HubAccess): Promise<{ bytes: number; sha256: string } | null> {
  return reading(url, access, async (pieces) => {
    const hash = (await createSHA256()).init()
    let bytes = 0
    for await (const piece of pieces) {
      hash.update(piece)
      bytes += piece.length
    }
    return { bytes, sha256: hash.digest() }
  })
}

type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>

async function reading<T>(
  url: string,
  { signal }: HubAccess,
  read: (pieces: Pieces) => Promise<T>,
): Promise<T | null> {
  const late = new AbortController()
  const give = () => late.abort(new Error(`nothing came for ${PATIENCE / 1000} s`))
  let timer = setTimeout(give, PATIENCE)
  async function* piecesOf({ body }: Response): Pieces {
    const reader = body?.getReader()
    for (;;) {
      const piece = (await reader?.read())?.value
      if (!piece) return
      clearTimeout(timer)
      timer = setTimeout(give, PATIENCE)
      yield piece
    }
  }
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, late.signal]) })
    // Servers of single-page apps answer their index page for files they do not have.
    const isPage = /^text\/html\b/i.test(response.headers.get('content-type') ?? '')
    if (response.ok && !isPage) return await read(piecesOf(response))
    await response.body?.cancel()
    if (response.ok || [403, 404, 410].includes(response.status)) return null
    throw unreachable(url, `its server answers ${response.status}`)
  } catch (thrown) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    throw thrown instanceof InoriginError ? thrown : unreachable(url, String(thrown), thrown)
  } finally {
    clearTimeout(timer)
  }
}

function unreachable(url: string, why: string, cause?: unknown): InoriginError {
  return new InoriginError('unavailable', `${url} could not be looked up: ${why}. Try again when it can.`, {
    code: 'hub_unreachable', retryAfter: 5, cause,
  })
}
