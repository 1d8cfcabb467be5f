/** From a record of WebLLM's to the files it stands for, with lengths and hashes. */
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

/** What a record stands for. Plain data: it is kept, so that the next load asks nobody. */
export interface MlcFiles {
  /** The commit's hash; `null` where the files lie on a server that is no hub. */
  revision: string | null
  created: string | undefined
  /** Tokens of prompt and answer together that the model was made for, where it says so. */
  context: number | undefined
  /** WebGPU features that its weights need. */
  features: string[]
  resources: Resource[]
}

/**
 * Looks a record's files up: at the hub by its listing; at any other server by reading the list of weights
 * and, as nothing tells their hashes, every file once. Rejects with `unavailable` that names what is
 * missing, and `aborted`.
 */
export async function resolveMlc(record: MlcRecord, access: MlcAccess): Promise<MlcFiles> {
  const library = await fetchFile(record.model_lib, access)
  if (!library) throw unfit(record, `its library ${record.model_lib} is not there`)
  if (!isModule(library.bytes)) {
    throw unfit(record, `its library ${record.model_lib} is no WebAssembly module`)
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
  // The weights, of which there may be gigabytes, come last.
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

/** A folder's URL as a repository of a hub; `null` where it can be none. */
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
  if (!shards) throw unfit(record, `its ${list} is no list of weights`)
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

/** A file of weights that is as long as their list says. */
function sized(record: MlcRecord, file: HubFile, { path, bytes }: Shard): HubFile {
  if (bytes === undefined || bytes === file.bytes) return file
  throw unfit(record, `its ${path} has ${file.bytes} bytes and should have ${bytes}`)
}

function isModule(bytes: Uint8Array): boolean {
  return [0, 0x61, 0x73, 0x6d].every((byte, index) => bytes[index] === byte)
}

function unfit({ model_id, model }: MlcRecord, why: string): InoriginError {
  const what = `${model_id} cannot be used as it lies at ${model}: ${why}`
  return new InoriginError('unavailable', `${what}. Correct the catalog entry, or the files.`, {
    code: 'hub_unfit',
  })
}
