/** Resolves a WebLLM record into the files of the model, with lengths and digests. */
import { InoriginError } from '../../error.ts'
import { PUBLIC_HUB_URL } from '../hub/hub-entry.ts'
import { toFileUrl, type HubFile, isNotHubError, parseJsonObject } from '../hub/listing.ts'
import { openRepository } from '../hub/resolve-hub.ts'
import type { HubSource, Resource } from '../schema.ts'
import { fetchSmallFile, openFolder, type LocatedModel } from './folder.ts'
import { assertIntegrity } from './integrity.ts'
import type { MlcAccess } from './file-sink.ts'
import {
  CONFIG_FILE,
  toRequiredFeatures,
  WEIGHT_LIST_FILES,
  MANIFEST_FILE,
  type Shard,
  parseShards,
  TOKENIZER_FILES,
  findMlcContextTokens,
} from './model-files.ts'
import type { MlcRecord } from './record-schema.ts'

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
  const library = await fetchSmallFile(record.model_lib, access)
  if (!library) throw unusableMlcError(record, `its library ${record.model_lib} was not found`)
  if (!isWasmModule(library.bytes)) {
    throw unusableMlcError(record, `its library ${record.model_lib} is not a WebAssembly module`)
  }
  await assertIntegrity(record, 'model_lib', library.bytes)
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
    const repository = await openRepository(source, access)
    return { ...repository, urlOf: ({ path }) => toFileUrl(source, repository.revision, path) }
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (source.host === PUBLIC_HUB_URL || !isNotHubError(error)) throw error
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
  const list = WEIGHT_LIST_FILES.find((name) => known.has(name)) ?? WEIGHT_LIST_FILES[0] ?? ''
  const [config, weights] = [get(CONFIG_FILE), get(list)]
  const chat = parseJsonObject(await at.read(config))
  if (!chat) throw unusableMlcError(record, `its ${CONFIG_FILE} cannot be read`)
  const shards = parseShards(parseJsonObject(await at.read(weights)))
  if (!shards) throw unusableMlcError(record, `its ${list} is not a list of weights`)
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
  await assertIntegrity(record, 'config', await at.read(config))
  const tokenizers = TOKENIZER_FILES.flatMap((name) => known.get(name) ?? [])
  for (const file of tokenizers) await assertIntegrity(record, file.path, () => at.read(file))
  const manifest = record.model_manifest
  const resources = [
    await resource(config, 'config'),
    ...(manifest === undefined ? [] : [await resource(get(manifest), 'config', MANIFEST_FILE)]),
  ]
  for (const file of tokenizers) resources.push(await resource(file, 'tokenizer'))
  resources.push(library, await resource(weights, 'mlc'))
  for (const shard of shards)
    resources.push(await resource(assertShardLength(record, get(shard.path), shard), 'mlc'))
  return {
    revision: at.revision,
    created: at.created,
    context: findMlcContextTokens({ ...chat, ...record.overrides }),
    features: toRequiredFeatures(`-${String(chat['quantization'] ?? '')}`),
    resources,
  }
}

/** Returns the file of weights. Throws if its length differs from the list's. */
function assertShardLength(record: MlcRecord, file: HubFile, { path, bytes }: Shard): HubFile {
  if (bytes === undefined || bytes === file.bytes) return file
  throw unusableMlcError(record, `its ${path} has ${file.bytes} bytes and should have ${bytes}`)
}

function isWasmModule(bytes: Uint8Array): boolean {
  return [0, 0x61, 0x73, 0x6d].every((byte, index) => bytes[index] === byte)
}

function unusableMlcError({ model_id, model }: MlcRecord, why: string): InoriginError {
  const what = `${model_id} at ${model} cannot be used: ${why}`
  return new InoriginError('unavailable', `${what}. Correct the catalog entry, or the files.`, {
    code: 'hub_unfit',
  })
}
