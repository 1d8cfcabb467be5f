/** Resolves a WebLLM record into the files of the model, with lengths and digests. */
import { InoriginError } from '../../error.ts'
import { HOST } from '../hub/entry.ts'
import { fileUrl, type HubFile, isNoHub } from '../hub/listing.ts'
import { openRepository, parse } from '../hub/resolve.ts'
import type { HubSource, Resource } from '../schema.ts'
import { fetchFile, openFolder, type Located } from './folder.ts'
import { checkIntegrity } from './integrity.ts'
import type { MlcAccess } from './keeper.ts'
import {
  CONFIG,
  featuresOf,
  LISTS,
  MANIFEST,
  type Shard,
  shardsOf,
  TOKENIZERS,
  tokensOf,
} from './layout.ts'
import type { MlcRecord } from './record.ts'

/** Files of a record. It is plain data and stored, so that later loads need no look-up. */
export interface MlcFiles {
  /** Commit hash; `null` on a server that is no hub. */
  revision: string | null
  created: string | undefined
  /** Context length of the model in tokens, if its configuration gives one. */
  context: number | undefined
  /** WebGPU features that the weights require. */
  features: string[]
  resources: Resource[]
}

/**
 * Looks up the files of a record. A hub provides a listing with digests. On any other server, every
 * file is read once to compute its digest. Rejects with `unavailable`, naming what is missing, and
 * with `aborted`.
 */
export async function resolveMlc(record: MlcRecord, access: MlcAccess): Promise<MlcFiles> {
  const library = await fetchFile(record.model_lib, access)
  if (!library) throw unfit(record, `its library ${record.model_lib} was not found`)
  if (!isModule(library.bytes)) {
    throw unfit(record, `its library ${record.model_lib} is not a WebAssembly module`)
  }
  await checkIntegrity(record, 'model_lib', library.bytes)
  const name = record.model_lib.replace(/[?#].*$/, '').replace(/^.*\//, '')
  const wasm: Resource = {
    type: 'wasm',
    url: record.model_lib,
    name: name.endsWith('.wasm') ? decodeURIComponent(name) : 'library.wasm',
    bytes: library.bytes.length,
    sha256: library.sha256,
  }
  // The weights are checked last, since they may be gigabytes.
  const found = await describeFiles(record, await locate(record, access), wasm)
  await access.keeper?.keep(wasm, new Blob([library.bytes]))
  return found
}

async function locate({ model }: MlcRecord, access: MlcAccess): Promise<Located> {
  const source = sourceOf(model)
  if (!source) return openFolder(model, access)
  try {
    const repository = await openRepository(source, access)
    return { ...repository, urlOf: ({ path }) => fileUrl(source, repository.revision, path) }
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (source.host === HOST || !isNoHub(error)) throw error
    return openFolder(model, access)
  }
}

/** Parses the URL of a folder as a repository of a hub; `null` if it cannot be one. */
function sourceOf(model: string): HubSource | null {
  const found = /^(https?:\/\/.+?\/)([\w.-]+\/[\w.-]+)\/(?:resolve\/([^/]+)\/)?$/.exec(model)
  const [, host, repository, revision = 'main'] = found ?? []
  if (host === undefined || repository === undefined) return null
  const unsaid = { dtypes: null, maxInputTokens: null, maxOutputTokens: null, created: null }
  return { host, repository, revision: decodeURIComponent(revision), ...unsaid }
}

async function describeFiles(record: MlcRecord, at: Located, library: Resource): Promise<MlcFiles> {
  const known = new Map(at.files.map((file) => [file.path, file]))
  const get = (path: string): HubFile => {
    const file = known.get(path)
    if (!file) throw unfit(record, `it has no ${path}`)
    return file
  }
  const list = LISTS.find((name) => known.has(name)) ?? LISTS[0] ?? ''
  const [config, weights] = [get(CONFIG), get(list)]
  const chat = parse(await at.read(config))
  if (!chat) throw unfit(record, `its ${CONFIG} cannot be read`)
  const shards = shardsOf(parse(await at.read(weights)))
  if (!shards) throw unfit(record, `its ${list} is not a list of weights`)
  get('tokenizer.json')

  const resource = async (
    file: HubFile,
    type: Resource['type'],
    name = file.path,
  ): Promise<Resource> => ({
    type,
    url: at.urlOf(file),
    name,
    bytes: file.bytes,
    sha256: await at.sha256(file),
  })
  await checkIntegrity(record, 'config', await at.read(config))
  const tokenizers = TOKENIZERS.flatMap((name) => known.get(name) ?? [])
  for (const file of tokenizers) await checkIntegrity(record, file.path, () => at.read(file))
  const manifest = record.model_manifest
  const resources = [
    await resource(config, 'config'),
    ...(manifest === undefined ? [] : [await resource(get(manifest), 'config', MANIFEST)]),
  ]
  for (const file of tokenizers) resources.push(await resource(file, 'tokenizer'))
  resources.push(library, await resource(weights, 'mlc'))
  for (const shard of shards)
    resources.push(await resource(sized(record, get(shard.path), shard), 'mlc'))
  return {
    revision: at.revision,
    created: at.created,
    context: tokensOf({ ...chat, ...record.overrides }),
    features: featuresOf(`-${String(chat['quantization'] ?? '')}`),
    resources,
  }
}

/** Returns the file of weights. Throws if its length differs from the list's. */
function sized(record: MlcRecord, file: HubFile, { path, bytes }: Shard): HubFile {
  if (bytes === undefined || bytes === file.bytes) return file
  throw unfit(record, `its ${path} has ${file.bytes} bytes and should have ${bytes}`)
}

function isModule(bytes: Uint8Array): boolean {
  return [0, 0x61, 0x73, 0x6d].every((byte, index) => bytes[index] === byte)
}

function unfit({ model_id, model }: MlcRecord, why: string): InoriginError {
  const what = `${model_id} at ${model} cannot be used: ${why}`
  return new InoriginError('unavailable', `${what}. Correct the catalog entry, or the files.`, {
    code: 'hub_unfit',
  })
}
