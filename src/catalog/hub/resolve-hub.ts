/** Resolves a short entry into a full one with the files of its repository. */
import { InoriginError } from '../../error.ts'
import { computeDigest } from '../../values/text.ts'
import { estimateMemoryBytes } from '../memory-bytes.ts'
import type { HubEntry, HubSource, Implementation, ModelEntry, Resource } from '../schema.ts'
import {
  fetchHub,
  fetchListing,
  type HubAccess,
  type Listing,
  MAX_SMALL_FILE_BYTES,
  parseJsonObject,
  toFileUrl,
  unreachableError,
} from './listing.ts'
import { findContextTokens, findVariants, type HubFile, TEXT_FILES } from './variants.ts'

/** Result of a look-up at one commit: plain data to store, so that later loads need no hub. */
export interface ResolvedHub {
  revision: string
  created: string | undefined
  /** Context length of the model in tokens, if its configuration gives one. */
  context: number | undefined
  implementations: Implementation[]
}

/** Repository at one commit, on a hub or elsewhere. */
export interface Repository extends Pick<Listing, 'revision' | 'created'> {
  files: readonly HubFile[]
  sha256(file: HubFile): Promise<string>
  read(file: HubFile): Promise<Uint8Array<ArrayBuffer>>
}

/**
 * Looks up the repository of an entry. Rejects with `unavailable` if the hub cannot be reached, or
 * if the repository contains no supported model.
 */
export const resolveHub = async (source: HubSource, access: HubAccess): Promise<ResolvedHub> =>
  resolveRepository(source, await openRepository(source, access))

/** Opens a repository of a hub at its current commit. Rejects with `unavailable` or `not_found`. */
export async function openRepository(source: HubSource, access: HubAccess): Promise<Repository> {
  const listing = await fetchListing(source, access)
  const read = (file: HubFile) => readSmallFile(source, listing.revision, file, access)
  return {
    ...listing,
    read,
    sha256: async (file) => file.sha256 ?? computeDigest('SHA-256', await read(file)),
  }
}

/** Resolves with the implementations in a repository. Rejects with `unavailable` if it has none. */
export async function resolveRepository(
  source: HubSource,
  { revision, created, files, sha256, read }: Repository,
): Promise<ResolvedHub> {
  const known = new Map(files.map((file) => [file.path, file]))
  const variants = findVariants(files, source.dtypes, source.imageInput)
  const configFile = known.get('config.json')
  if (variants.length === 0 || !configFile || !known.has('tokenizer.json'))
    throw noModelError(source)

  const configBytes = await read(configFile)
  const config = parseJsonObject(configBytes) ?? {}
  const texts = TEXT_FILES.flatMap(({ path, type }) => {
    const file = known.get(path)
    return file ? [{ file, type }] : []
  })
  const all = [...texts.map(({ file }) => file), ...variants.flatMap((variant) => variant.files)]
  const hashes = new Map([[configFile.path, await computeDigest('SHA-256', configBytes)]])
  for (const file of all) if (!hashes.has(file.path)) hashes.set(file.path, await sha256(file))

  const resource = ({ path: name, bytes }: HubFile, type: Resource['type']): Resource => {
    const url = toFileUrl(source, revision, name)
    return { type, url, name, bytes, sha256: hashes.get(name) ?? '' }
  }
  const implementations = variants.map(({ dtype, device, features, files: weights }) => ({
    id: `${dtype}-${device}`,
    engine: 'onnx' as const,
    device,
    requires: { ...(features.length > 0 && { features }), memory: estimateMemoryBytes(weights) },
    resources: [
      ...texts.map(({ file, type }) => resource(file, type)),
      ...weights.map((file) => resource(file, file.path.endsWith('.onnx') ? 'onnx' : 'data')),
    ],
  }))
  return { revision, created, context: findContextTokens(config), implementations }
}

/** Returns the entry completed with the result of a look-up. Fields set in the catalog stay. */
export function completeEntry(entry: ModelEntry, resolved: ResolvedHub): ModelEntry {
  const limits = entry.hub && toTokenLimits(entry.hub, resolved.context)
  const created = entry.hub?.created ?? resolved.created ?? entry.created
  // Implementations of MLC come before those of the repository.
  const implementations = [...entry.implementations, ...resolved.implementations]
  return { ...entry, ...limits, created, implementations }
}

/** Reads a small file and checks it against its Git blob id or SHA-256. */
async function readSmallFile(
  source: HubSource,
  revision: string,
  file: HubFile,
  access: HubAccess,
): Promise<Uint8Array<ArrayBuffer>> {
  if (file.bytes > MAX_SMALL_FILE_BYTES) throw fileMismatchError(source, file)
  const bytes = await fetchHub(source, toFileUrl(source, revision, file.path), access, file.bytes)
  const object = new Blob([`blob ${bytes.length}\0`, bytes])
  const isWhole =
    file.sha256 === null
      ? (await computeDigest('SHA-1', await object.arrayBuffer())) === file.blobId
      : (await computeDigest('SHA-256', bytes)) === file.sha256
  if (bytes.length !== file.bytes || !isWhole) throw fileMismatchError(source, file)
  return bytes
}

function noModelError({ repository, dtypes }: HubSource): InoriginError {
  const what = `${repository} has no language model for the browser`
  const wanted = dtypes ? ` in ${dtypes.join(' or ')}` : ''
  const expected = 'config.json, tokenizer.json and onnx/model*.onnx are expected'
  return new InoriginError('unavailable', `${what}${wanted}: ${expected}.`, { code: 'hub_unfit' })
}

const fileMismatchError = ({ host, repository }: HubSource, { path }: HubFile): InoriginError =>
  unreachableError(
    `${host} sent a ${path} of ${repository} that does not match its list. Try again.`,
  )

// Expands a short entry of a hub model into a full one by filling in defaults.

export const PUBLIC_HUB_URL = 'https://huggingface.co/'

/** Context length in tokens to assume until the model's own is known. Every chat model has it. */
const DEFAULT_CONTEXT_TOKENS = 4_096

/** Creation time of a model whose own is unknown. */
export const UNKNOWN_CREATION_TIME = '1970-01-01T00:00:00Z'

/** Returns a full entry. `host` is an absolute URL, or `undefined` for the public hub. */
export function expandHubEntry(entry: HubEntry, host: string | undefined): ModelEntry {
  const { huggingface, revision = 'main', dtypes = null, host: _, ...described } = entry
  const hub: HubSource = {
    repository: huggingface,
    revision,
    host: host ?? PUBLIC_HUB_URL,
    dtypes,
    maxInputTokens: entry.maxInputTokens ?? null,
    maxOutputTokens: entry.maxOutputTokens ?? null,
    created: entry.created ?? null,
    ...(entry.capabilities?.imageInput && { imageInput: true }),
  }
  return {
    ...described,
    type: 'model',
    name: entry.name ?? huggingface.slice(huggingface.indexOf('/') + 1),
    created: entry.created ?? UNKNOWN_CREATION_TIME,
    ...toTokenLimits(hub, undefined),
    implementations: entry.implementations ?? [],
    hub,
  }
}

/**
 * Returns the token limits of a model: prompt and output together, and output alone. `context` is
 * the model's context length, if known. A catalog may set a lower limit, but not a higher one.
 */
export function toTokenLimits(
  hub: Pick<HubSource, 'maxInputTokens' | 'maxOutputTokens'>,
  context: number | undefined,
): Pick<ModelEntry, 'maxInputTokens' | 'maxOutputTokens'> {
  const promised = hub.maxInputTokens ?? context ?? DEFAULT_CONTEXT_TOKENS
  const maxInputTokens = Math.min(promised, context ?? promised)
  return {
    maxInputTokens,
    maxOutputTokens: Math.min(maxInputTokens, hub.maxOutputTokens ?? DEFAULT_CONTEXT_TOKENS),
  }
}
