/** Resolves a WebLLM record into the files of the model, with lengths and digests. */
import { createSHA256 } from 'hash-wasm'
import { InoriginError } from '../../error.ts'
import { computeDigest } from '../../values/text.ts'
import * as hub from '../hub/resolve-hub.ts'
import { sumBytes } from '../memory-bytes.ts'
import type { HubFile } from '../hub/variants.ts'
import type { HubSource, Resource } from '../schema.ts'
import * as layout from './model-files.ts'
import type { MlcRecord } from './record-schema.ts'

/** Files of a record. It is plain data and stored, so that later loads need no look-up. */
export interface MlcFiles {
  revision: string | null
  created: string | undefined
  context: number | undefined
  features: string[]
  resources: Resource[]
}

/**
 * Looks up the files of a record. A hub provides a listing with digests. On any other server, every
 * file is read once to compute its digest. Rejects with `unavailable`, naming what is missing, and
 * with `aborted`.
 */
export async function resolveMlc(record: MlcRecord, access: MlcAccess): Promise<MlcFiles> {
  const library = await fetchSmallFile(record.model_lib, access)
  if (!library) throw unusableMlcError(record, `its library ${record.model_lib} was not found`)
  if (![0, 0x61, 0x73, 0x6d].every((byte, index) => library.bytes[index] === byte))
    throw unusableMlcError(record, `its library ${record.model_lib} is not a WebAssembly module`)
  await assertIntegrity(record, 'model_lib', () => library.bytes)
  const name = record.model_lib.replace(/[?#].*$/, '').replace(/^.*\//, '')
  const wasm: Resource = {
    type: 'wasm',
    url: record.model_lib,
    name: name.endsWith('.wasm') ? decodeURIComponent(name) : 'library.wasm',
    bytes: library.bytes.length,
    sha256: library.sha256,
  }
  // The weights are checked last, since they may be gigabytes.
  const found = await describeFiles(record, await locateModel(record, access), wasm)
  await access.sink?.store(wasm, new Blob([library.bytes]))
  return found
}

async function locateModel({ model }: MlcRecord, access: MlcAccess): Promise<LocatedModel> {
  const source = parseHubSource(model)
  if (!source) return openFolder(model, access)
  try {
    const repository = await hub.openRepository(source, access)
    return { ...repository, urlOf: ({ path }) => hub.toFileUrl(source, repository.revision, path) }
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (source.host === hub.PUBLIC_HUB_URL || !hub.isNotHubError(error)) throw error
    return openFolder(model, access)
  }
}

/** Parses the URL of a folder as a repository of a hub; `null` if it cannot be one. */
function parseHubSource(model: string): HubSource | null {
  const found = /^(https?:\/\/.+?\/)([\w.-]+\/[\w.-]+)\/(?:resolve\/([^/]+)\/)?$/.exec(model)
  const [, host, repository, revision = 'main'] = found ?? []
  if (host === undefined || repository === undefined) return null
  const unsaid = { dtypes: null, maxInputTokens: null, maxOutputTokens: null, created: null }
  return { host, repository, revision: decodeURIComponent(revision), ...unsaid }
}

async function describeFiles(
  record: MlcRecord,
  at: LocatedModel,
  library: Resource,
): Promise<MlcFiles> {
  const known = new Map(at.files.map((file) => [file.path, file]))
  const get = (path: string): HubFile => {
    const file = known.get(path)
    if (!file) throw unusableMlcError(record, `it has no ${path}`)
    return file
  }
  const list =
    layout.WEIGHT_LIST_FILES.find((name) => known.has(name)) ?? layout.WEIGHT_LIST_FILES[0] ?? ''
  const [config, weights] = [get(layout.CONFIG_FILE), get(list)]
  const chat = hub.parseJsonObject(await at.read(config))
  if (!chat) throw unusableMlcError(record, `its ${layout.CONFIG_FILE} cannot be read`)
  const shards = layout.parseShards(hub.parseJsonObject(await at.read(weights)))
  if (!shards) throw unusableMlcError(record, `its ${list} is not a list of weights`)
  get('tokenizer.json')

  const resources: Resource[] = []
  const add = async (file: HubFile, type: Resource['type'], name = file.path) => {
    const sha256 = await at.sha256(file)
    resources.push({ type, url: at.urlOf(file), name, bytes: file.bytes, sha256 })
  }
  await assertIntegrity(record, 'config', () => at.read(config))
  const tokenizers = layout.TOKENIZER_FILES.flatMap((name) => known.get(name) ?? [])
  for (const file of tokenizers) await assertIntegrity(record, file.path, () => at.read(file))
  await add(config, 'config')
  const manifest = record.model_manifest
  if (manifest !== undefined) await add(get(manifest), 'config', layout.MANIFEST_FILE)
  for (const file of tokenizers) await add(file, 'tokenizer')
  resources.push(library)
  await add(weights, 'mlc')
  for (const { path, bytes } of shards) {
    const file = get(path)
    if (bytes !== undefined && bytes !== file.bytes) {
      const why = `its ${path} has ${file.bytes} bytes and should have ${bytes}`
      throw unusableMlcError(record, why)
    }
    await add(file, 'mlc')
  }
  return {
    revision: at.revision,
    created: at.created,
    context: layout.findMlcContextTokens({ ...chat, ...record.overrides }),
    features: layout.toRequiredFeatures(`-${String(chat['quantization'] ?? '')}`),
    resources,
  }
}

const unusableMlcError = ({ model_id, model }: MlcRecord, why: string): InoriginError =>
  hub.unfitError(`${model_id} at ${model} cannot be used: ${why}`, 'files')

type Bytes = Uint8Array<ArrayBuffer>

/**
 * Compares a file with its hash in the record, if any. `file` is `config`, `model_lib` or the name
 * of a tokenizer file. Rejects with `unavailable` on a mismatch. With `onFailure: 'warn'`, logs a
 * warning instead.
 */
async function assertIntegrity(
  { model_id, integrity = {} }: MlcRecord,
  file: string,
  read: () => Bytes | Promise<Bytes>,
): Promise<void> {
  const { tokenizer = {}, onFailure } = integrity
  const isNamed = file === 'config' || file === 'model_lib'
  const expected = isNamed ? integrity[file] : tokenizer[file]
  const [, bits] = /^sha(256|384|512)-/.exec(expected ?? '') ?? []
  if (bits === undefined) return
  const digest = new Uint8Array(await crypto.subtle.digest(`SHA-${bits}`, await read()))
  const got = `sha${bits}-${btoa(String.fromCharCode(...digest))}`
  if (got === expected) return
  const what = `The ${file} of ${model_id} is not the file that its \`integrity\` describes`
  const message = `${what}: it should hash to ${expected} and hashes to ${got}.`
  if (onFailure === 'warn') return console.warn(message)
  throw new InoriginError('unavailable', `${message} Correct the catalog entry, or the file.`, {
    code: 'hash_mismatch',
    details: { expected, got },
  })
}

// Finds a model's files on a server that is no hub, by name, and hashes them while reading.

interface LocatedModel extends Omit<hub.Repository, 'revision'> {
  revision: string | null
  urlOf(file: HubFile): string
}

export interface FileSink {
  /** Called once before long files are read. Rejects with `unavailable` if they do not fit. */
  reserve(bytes: number): Promise<void>
  onBytes(bytes: number): void
  store(resource: Resource, content: Blob): Promise<void>
}

interface MlcAccess extends hub.HubAccess {
  /** Storage for the files. Default: nothing is stored. */
  sink?: FileSink
}

type FetchedFile = NonNullable<Awaited<ReturnType<typeof fetchSmallFile>>>

/** Maximum length in bytes of a file of weights without a length in its list. */
const MAX_SHARD_BYTES = 4 * 2 ** 30

/** Maximum length of a file to hold until its hash is known. Longer ones are downloaded again. */
const MAX_COLLECTED_BYTES = 512 * 2 ** 20

/** Bytes collected before they become a Blob, since browsers store long Blobs on disk. */
const BLOB_PART_BYTES = 16 * 2 ** 20

/**
 * Opens the folder at the URL. A URL without `resolve/<revision>/` is tried with `resolve/main/`
 * first, as in WebLLM, and then unchanged. Rejects with `unavailable` if there is no model, and
 * with `aborted`.
 */
export async function openFolder(model: string, access: MlcAccess): Promise<LocatedModel> {
  const bases = /\/resolve\/[^/]+\/$/.test(model) ? [model] : [`${model}resolve/main/`, model]
  for (const base of bases) {
    const config = await fetchSmallFile(new URL(layout.CONFIG_FILE, base).href, access)
    if (config && hub.parseJsonObject(config.bytes)) return readFolder(base, config, access)
  }
  const what = `There is no ${layout.CONFIG_FILE} at ${bases.join(' or ')}, so no model compiled by MLC`
  throw hub.unfitError(what, 'server')
}

async function readFolder(
  base: string,
  config: FetchedFile,
  access: MlcAccess,
): Promise<LocatedModel> {
  const { sink } = access
  const small = new Map([[layout.CONFIG_FILE, config]])
  for (const path of [
    ...layout.TOKENIZER_FILES,
    layout.MANIFEST_FILE,
    ...layout.WEIGHT_LIST_FILES,
  ]) {
    const file = await fetchSmallFile(toUrl(base, path), access)
    if (file) small.set(path, file)
    // A model has one list of weights, under one of the names.
    if (file && layout.WEIGHT_LIST_FILES.includes(path)) break
  }
  const list = layout.WEIGHT_LIST_FILES.map((path) => small.get(path)).find(
    (file) => file !== undefined,
  )
  const shards = (list && layout.parseShards(hub.parseJsonObject(list.bytes))) ?? []
  const files = Array.from(small, ([path, { bytes, sha256 }]): HubFile => {
    return { path, bytes: bytes.length, sha256, blobId: '' }
  })
  const urlOf = ({ path }: { path: string }) => toUrl(base, path)
  const store = async (file: HubFile, content: Blob) => {
    const { path: name, bytes, sha256 } = file
    const fields = { name, bytes, sha256: sha256 ?? '' }
    await sink?.store(
      { type: layout.toMlcResourceType(name), url: urlOf(file), ...fields },
      content,
    )
  }
  await sink?.reserve(sumBytes([...files, ...shards.map(({ bytes = 0 }) => ({ bytes }))]))
  const weights: HubFile[] = []
  for (const shard of shards) {
    const found = await fetchWeights(urlOf(shard), shard.bytes, access)
    if (!found) continue
    const { content, ...fields } = found
    const file = { path: shard.path, ...fields, blobId: '' }
    weights.push(file)
    if (content) await store(file, content)
  }
  for (const file of files) {
    sink?.onBytes(file.bytes)
    await store(file, new Blob([small.get(file.path)?.bytes ?? '']))
  }
  return {
    revision: null,
    created: undefined,
    files: [...files, ...weights],
    urlOf,
    sha256: async ({ sha256 }) => sha256 ?? '',
    read: async ({ path }) => small.get(path)?.bytes ?? new Uint8Array(),
  }
}

const toUrl = (base: string, path: string): string =>
  new URL(path.split('/').map(encodeURIComponent).join('/'), base).href

/** Fetches a small file; `null` if there is none. Rejects with `unavailable` and `aborted`. */
export const fetchSmallFile = (url: string, access: hub.HubAccess) =>
  fetchOptional(url, access, hub.MAX_SMALL_FILE_BYTES, async (pieces) => {
    const bytes = await hub.readAll(pieces)
    return { bytes, sha256: await computeDigest('SHA-256', bytes) }
  })

/**
 * Fetches and hashes a file of any length; `null` if there is none. Returns its content if there is a
 * sink for it, and it is not too long. Rejects with `unavailable` and `aborted`.
 */
export const fetchWeights = (
  url: string,
  maxBytes = MAX_SHARD_BYTES,
  { sink, ...access }: MlcAccess,
) =>
  fetchOptional(url, access, maxBytes, async (pieces) => {
    const hash = (await createSHA256()).init()
    let content: Blob | undefined = sink && new Blob()
    let parts: Bytes[] = []
    let bytes = 0
    for await (const piece of pieces) {
      hash.update(piece)
      bytes += piece.length
      sink?.onBytes(piece.length)
      if (bytes > MAX_COLLECTED_BYTES) content = undefined
      if (content) parts.push(piece)
      if (content && bytes - content.size < BLOB_PART_BYTES) continue
      content &&= new Blob([content, ...parts])
      parts = []
    }
    return { bytes, sha256: hash.digest(), content: content && new Blob([content, ...parts]) }
  })

async function fetchOptional<T>(
  url: string,
  { signal }: hub.HubAccess,
  maxBytes: number,
  read: (pieces: hub.Pieces) => Promise<T>,
): Promise<T | null> {
  try {
    return await hub.fetchBounded(url, { signal, maxBytes }, async (response, pieces) => {
      const { ok, status, headers } = response
      // Servers of single-page apps send their index page for missing files.
      const isPage = /^text\/html\b/i.test(headers.get('content-type') ?? '')
      if (ok && !isPage) return read(pieces)
      if (ok || [403, 404, 410].includes(status)) return null
      throw failed(`the server returned ${status}`)
    })
  } catch (thrown) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    throw thrown instanceof InoriginError ? thrown : failed(String(thrown), thrown)
  }
  function failed(why: string, cause?: unknown): InoriginError {
    return hub.unreachableError(`${url} could not be looked up: ${why}. Try again later.`, cause)
  }
}
