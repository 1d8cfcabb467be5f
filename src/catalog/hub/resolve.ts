/** From a short entry to a full one: what its repository holds, with lengths and hashes. */
import { InoriginError } from '../../error.ts'
import { digestOf } from '../../store/hash.ts'
import { contextOf } from '../context.ts'
import { memoryOf } from '../memory.ts'
import type { HubSource, Implementation, ModelEntry, Resource } from '../schema.ts'
import { limitsOf } from './entry.ts'
import { SMALL } from './fetching.ts'
import { findVariants, TEXTS } from './layout.ts'
import {
  fetchHub,
  fetchListing,
  fileUrl,
  type HubAccess,
  type HubFile,
  type Listing,
} from './listing.ts'

/** What a hub knew of an entry at one commit. Plain data: it is kept, so that the next load needs no hub. */
export interface Resolved {
  /** The commit's hash. */
  revision: string
  created: string | undefined
  /** Tokens of prompt and answer together that the model was made for, where it says so. */
  context: number | undefined
  implementations: Implementation[]
}

/** A repository at one commit, wherever its files are. */
export interface Repository extends Pick<Listing, 'revision' | 'created'> {
  files: readonly HubFile[]
  /** What a file of those hashes to. */
  sha256(file: HubFile): Promise<string>
  /** The content of a small one. */
  read(file: HubFile): Promise<Uint8Array<ArrayBuffer>>
}

/**
 * Looks an entry's repository up. Rejects with `unavailable` when the hub cannot be reached, or when
 * the repository holds nothing that runs here.
 */
export async function resolveHub(source: HubSource, access: HubAccess): Promise<Resolved> {
  return resolveRepository(source, await openRepository(source, access))
}

/** A repository of a hub, as it is now. Rejects with `unavailable` and `not_found`. */
export async function openRepository(source: HubSource, access: HubAccess): Promise<Repository> {
  const listing = await fetchListing(source, access)
  const read = (file: HubFile) => readSmall(source, listing.revision, file, access)
  return {
    ...listing,
    read,
    sha256: async (file) => file.sha256 ?? digestOf('SHA-256', await read(file)),
  }
}

/** The implementations that a repository's files make. Rejects with `unavailable` when none. */
export async function resolveRepository(
  source: HubSource,
  { revision, created, files, sha256, read }: Repository,
): Promise<Resolved> {
  const known = new Map(files.map((file) => [file.path, file]))
  const variants = findVariants(files, source.dtypes)
  const configFile = known.get('config.json')
  if (variants.length === 0 || !configFile || !known.has('tokenizer.json')) throw unfit(source)

  const configBytes = await read(configFile)
  const config = parse(configBytes) ?? {}
  const texts = TEXTS.flatMap(({ path, type }) => {
    const file = known.get(path)
    return file ? [{ file, type }] : []
  })
  const all = [...texts.map(({ file }) => file), ...variants.flatMap((variant) => variant.files)]
  const hashes = new Map([[configFile.path, await digestOf('SHA-256', configBytes)]])
  for (const file of all) {
    if (!hashes.has(file.path)) hashes.set(file.path, await sha256(file))
  }

  const resource = (file: HubFile, type: Resource['type']): Resource => ({
    type,
    url: fileUrl(source, revision, file.path),
    name: file.path,
    bytes: file.bytes,
    sha256: hashes.get(file.path) ?? '',
  })
  const implementations = variants.map(({ dtype, device, features, files: weights }) => ({
    id: `${dtype}-${device}`,
    engine: 'onnx' as const,
    device,
    requires: {
      ...(features.length > 0 && { features }),
      memory: memoryOf(weights.reduce((sum, { bytes }) => sum + bytes, 0)),
    },
    resources: [
      ...texts.map(({ file, type }) => resource(file, type)),
      ...weights.map((file) => resource(file, file.path.endsWith('.onnx') ? 'onnx' : 'data')),
    ],
  }))
  return { revision, created, context: contextOf(config), implementations }
}

/** The entry with what the hub knew; what the catalog says itself stays. */
export function completeEntry(entry: ModelEntry, resolved: Resolved): ModelEntry {
  const { context } = resolved
  const limits = entry.hub && limitsOf(entry.hub, context)
  const created = entry.hub?.created ?? resolved.created ?? entry.created
  // What MLC compiled of the same model comes first.
  const implementations = [...entry.implementations, ...resolved.implementations]
  return { ...entry, ...limits, created, implementations }
}

/** A file that is read whole to be hashed, checked against what git knows it by. */
async function readSmall(
  source: HubSource,
  revision: string,
  file: HubFile,
  access: HubAccess,
): Promise<Uint8Array<ArrayBuffer>> {
  if (file.bytes > SMALL) throw damaged(source, file)
  const bytes = await fetchHub(source, fileUrl(source, revision, file.path), access, file.bytes)
  const head = new TextEncoder().encode(`blob ${bytes.length}\0`)
  const object = new Uint8Array(head.length + bytes.length)
  object.set(head)
  object.set(bytes, head.length)
  const isWhole =
    file.sha256 === null
      ? (await digestOf('SHA-1', object)) === file.blobId
      : (await digestOf('SHA-256', bytes)) === file.sha256
  if (bytes.length !== file.bytes || !isWhole) throw damaged(source, file)
  return bytes
}

/** An object of JSON; `null` for anything else. */
export function parse(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return typeof json === 'object' ? (json as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

function unfit({ repository, dtypes }: HubSource): InoriginError {
  const what = `${repository} holds no language model for the browser`
  const wanted = dtypes ? ` in ${dtypes.join(' or ')}` : ''
  const expected = 'config.json, tokenizer.json and onnx/model*.onnx are expected'
  return new InoriginError('unavailable', `${what}${wanted}: ${expected}.`, { code: 'hub_unfit' })
}

function damaged({ host, repository }: HubSource, { path }: HubFile): InoriginError {
  const what = `${host} sent a ${path} of ${repository} that is not the one it lists. Try again.`
  return new InoriginError('unavailable', what, { code: 'hub_unreachable', retryAfter: 5 })
}
