/** Resolves a short entry into a full one with the files of its repository on a hub. */
import * as v from 'valibot'
import { InoriginError } from '../../error.ts'
import { isObjectOrArray, omit } from '../../values/objects.ts'
import { computeDigest } from '../../values/text.ts'
import { estimateMemoryBytes } from '../memory-bytes.ts'
import type {
  Entry,
  GgufEntry,
  HubEntry,
  HubSource,
  Implementation,
  ModelEntry,
  PredictorEntry,
  Resource,
} from '../schema.ts'
import { languageSchema, optionalString, sha256Schema, timestampSchema } from '../value-schemas.ts'
import { findContextTokens, findVariants, type HubFile, TEXT_FILES } from './variants.ts'

/** Facts of a model that a look-up finds, and a catalog entry may state. */
type ModelFacts = Pick<
  ModelEntry,
  'license' | 'languages' | 'parameters' | 'quantization' | 'capabilities'
>

/** Result of a look-up at one commit: plain data to store, so that later loads need no hub. */
export interface ResolvedHub extends ModelFacts {
  /** Commit; `null` if the files are in no repository. */
  revision: string | null
  /** Name of the model, if its file states one. */
  name?: string | undefined
  created: string | undefined
  /** Context length of the model in tokens, if its configuration gives one. */
  context: number | undefined
  /** Fields of a predictor. Absent for a language model. */
  predictor?: PredictorFacts
  implementations: Implementation[]
}

/** Fields of a predictor that its files tell. */
export type PredictorFacts = Pick<
  PredictorEntry,
  'description' | 'embeddings' | 'rerank' | 'speech' | 'states' | 'signature'
>

/** Repository at one commit, on a hub or elsewhere. */
export interface Repository {
  revision: string
  /** Time when the repository was created, in RFC 3339. */
  created: string | undefined
  /** License and languages of the model's card; absent if it names none. */
  license?: string | undefined
  languages?: string[] | undefined
  files: readonly HubFile[]
  sha256(file: HubFile): Promise<string>
  read(file: HubFile): Promise<Uint8Array<ArrayBuffer>>
}

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

/** Resolves with the language model of a repository. Rejects with `unavailable` if it has none. */
export async function resolveRepository(
  source: HubSource,
  { revision, created, license, languages, files, sha256, read }: Repository,
): Promise<ResolvedHub> {
  const known = new Map(files.map((file) => [file.path, file]))
  const variants = findVariants(files, source.dtypes, source.imageInput, source.precision)
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
    ...(source.precision === 'exact' && { precision: source.precision }),
    resources: [
      ...texts.map(({ file, type }) => resource(file, type)),
      ...weights.map((file) => resource(file, file.path.endsWith('.onnx') ? 'onnx' : 'data')),
    ],
  }))
  const context = findContextTokens(config)
  return { revision, created, context, license, languages, implementations }
}

/**
 * Returns the entry completed with the result of a look-up, which may tell that it is a predictor.
 * Fields set in the catalog stay.
 */
export const completeEntry = (entry: ModelEntry, resolved: ResolvedHub): Entry =>
  resolved.predictor
    ? completePredictor(entry, resolved, resolved.predictor)
    : completeModel(entry, resolved)

/** Fields of an entry that only a language model has. */
const MODEL_FIELDS = [
  'gguf',
  'mlc',
  'capabilities',
  'toolFormat',
  'reasoningBudget',
  'imageDetail',
  'maxInputTokens',
  'maxOutputTokens',
] as const

function completePredictor(
  { hub, ...entry }: ModelEntry,
  { created, license, languages, implementations }: ResolvedHub,
  facts: PredictorFacts,
): PredictorEntry {
  return {
    ...withoutUndefined({ license, languages }),
    ...facts,
    ...omit(entry, MODEL_FIELDS),
    type: 'predictor',
    created: hub?.created ?? created ?? entry.created,
    ...(hub && { hub }),
    implementations,
  }
}

/** Returns a language model completed with the result of a look-up. Fields set in the catalog stay. */
export function completeModel(entry: ModelEntry, resolved: ResolvedHub): ModelEntry {
  const source = entry.hub ?? entry.gguf
  const limits = source && toTokenLimits(source, resolved.context)
  const created = source?.created ?? resolved.created ?? entry.created
  // Implementations of MLC come before those of the repository.
  const implementations = [...entry.implementations, ...resolved.implementations]
  const { license, languages, parameters, quantization, capabilities } = resolved
  const found = withoutUndefined<ModelFacts>({
    license,
    languages,
    parameters,
    quantization,
    capabilities,
  })
  const name = entry.name === toDefaultName(entry) ? (resolved.name ?? entry.name) : entry.name
  return { ...found, ...entry, ...limits, name, created, implementations }
}

/** Object whose absent fields may also be `undefined`. */
type Loose<T> = { [Key in keyof T]: T[Key] | undefined }

const withoutUndefined = <T extends object>(facts: Loose<T>): T =>
  Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as T

/** Returns the name of an entry that the catalog gives none: that of its repository or file. */
const toDefaultName = ({ hub, gguf }: Pick<ModelEntry, 'hub' | 'gguf'>): string => {
  const path = hub?.repository ?? decodeURIComponent(new URL(gguf?.url ?? 'file:').pathname)
  return path.slice(path.lastIndexOf('/') + 1).replace(/\.gguf$/i, '')
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
  const what = `${repository} has no model for the browser`
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

const SOURCE_FIELDS = ['huggingface', 'file', 'revision', 'dtypes', 'host'] as const

/** Fields of an entry that only a predictor has. */
export const PREDICTOR_FIELDS = ['embeddings', 'rerank', 'speech', 'states', 'signature'] as const

/**
 * Returns the full entry of a language model, or of a model whose kind its files will tell. `host` is an
 * absolute URL, or `undefined` for the public hub.
 */
export function expandHubEntry(entry: HubEntry, host: string | undefined): ModelEntry {
  const described = omit(entry, [...SOURCE_FIELDS, ...PREDICTOR_FIELDS])
  const hub = toHubSource(entry, host)
  return { ...toModelEntry({ ...described, type: 'model' }, { hub }), hub }
}

/** Returns the full entry of a predictor with its signature; `null` for another one. */
export function expandHubPredictor(
  entry: HubEntry,
  host: string | undefined,
): PredictorEntry | null {
  const { signature, implementations } = entry
  if (entry.type !== 'predictor' || !signature || !implementations) return null
  const hub = toHubSource(entry, host)
  const { embeddings, rerank, speech, states } = entry
  const facts = { signature, embeddings, rerank, speech, states }
  const model = expandHubEntry(entry, host)
  const resolved = { created: undefined, context: undefined, revision: null, implementations }
  return { ...completePredictor(model, resolved, withoutUndefined(facts)), hub }
}

const toHubSource = (entry: HubEntry, host: string | undefined): HubSource => ({
  repository: entry.huggingface,
  revision: entry.revision ?? 'main',
  host: host ?? PUBLIC_HUB_URL,
  dtypes: entry.dtypes ?? null,
  ...(entry.file !== undefined && { file: entry.file }),
  ...toWritten(entry),
  ...(entry.capabilities?.imageInput && { imageInput: true }),
})

/** Returns a full entry. `url` is absolute. */
export function expandGgufEntry(entry: GgufEntry, url: string): ModelEntry {
  const { gguf: _, ...described } = entry
  const gguf = { url, ...toWritten(entry) }
  return { ...toModelEntry(described, { gguf }), gguf }
}

type WrittenFields = Omit<GgufEntry, 'gguf'>

/** Returns what the catalog says of a model whose files are looked up. */
const toWritten = ({
  precision,
  maxInputTokens,
  maxOutputTokens,
  created,
}: Pick<WrittenFields, 'precision' | 'maxInputTokens' | 'maxOutputTokens' | 'created'>) => ({
  ...(precision && { precision }),
  maxInputTokens: maxInputTokens ?? null,
  maxOutputTokens: maxOutputTokens ?? null,
  created: created ?? null,
})

/** Returns a full entry without its source, by which it is named if the catalog gives no name. */
function toModelEntry(entry: WrittenFields, source: Pick<ModelEntry, 'hub' | 'gguf'>): ModelEntry {
  const { precision: _, ...described } = entry
  return {
    ...described,
    type: 'model',
    name: entry.name ?? toDefaultName(source),
    created: entry.created ?? UNKNOWN_CREATION_TIME,
    ...toTokenLimits(toWritten(entry), undefined),
    implementations: entry.implementations ?? [],
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

// Reads from a hub which files a repository has, with their lengths and digests.

export interface HubAccess {
  signal: AbortSignal
  /** Access token for private repositories. It is sent to this host only. */
  token?: string | undefined
}

const optionalField = v.fallback(optionalString, undefined)

/** Metadata at the start of the model's card. Everything in it is optional. */
const cardSchema = v.object({
  license: optionalField,
  /** Name of a license that the hub does not list. `license` is then `other`. */
  license_name: optionalField,
  language: v.fallback(v.optional(v.union([v.string(), v.array(v.string())])), undefined),
})

const listingSchema = v.object({
  sha: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  // The field is optional information, so a mirror with another format is tolerated.
  createdAt: v.fallback(v.optional(timestampSchema), undefined),
  cardData: v.fallback(cardSchema, {}),
  siblings: v.array(
    v.object({
      rfilename: v.string(),
      size: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
      blobId: optionalString,
      lfs: v.nullish(v.object({ sha256: sha256Schema })),
    }),
  ),
})

/**
 * Resolves with the files of a repository. Rejects with `unavailable` if the hub cannot be reached
 * or denies access, and with `not_found` if there is no such repository.
 */
export async function fetchListing(source: HubSource, access: HubAccess) {
  const { repository, revision, host } = source
  const path = `api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`
  const body = await fetchHub(source, new URL(path, host).href, access)
  const { success, output } = v.safeParse(listingSchema, parseJsonObject(body))
  if (!success)
    throw invalidHubResponseError(source, 'returned a list of files in an unknown format')
  const files = output.siblings.map(({ rfilename, size, blobId, lfs }): HubFile => {
    if (size === undefined || blobId === undefined)
      throw invalidHubResponseError(source, `does not report the size of ${rfilename}`)
    return { path: rfilename, bytes: size, sha256: lfs?.sha256 ?? null, blobId }
  })
  const isPinned = /^[0-9a-f]{40}$/.test(revision)
  if (isPinned && output.sha !== revision)
    throw invalidHubResponseError(source, `returned the commit ${output.sha}, not ${revision}`)
  return { revision: output.sha, created: output.createdAt, ...readCard(output.cardData), files }
}

/** Returns the license and the languages of a model's card. Words that name no language are left out. */
function readCard({ license, license_name, language }: v.InferOutput<typeof cardSchema>) {
  const named = license === 'other' ? license_name : license
  const languages = [language ?? []].flat().filter((one) => v.is(languageSchema, one))
  return {
    ...(named && { license: named }),
    ...(languages.length > 0 && { languages: [...new Set(languages)] }),
  }
}

export function toFileUrl({ repository, host }: HubSource, revision: string, path: string): string {
  const parts = path.split('/').map(encodeURIComponent).join('/')
  return new URL(`${repository}/resolve/${revision}/${parts}`, host).href
}

/** Returns `true` if the error means that the server is no hub or has no such repository. */
export const isNotHubError = ({ code, details }: InoriginError): boolean =>
  code === 'hub_not_found' || code === 'hub_refused' || details?.['isStrange'] === true

/** Resolves with the content of a URL, at most `maxBytes` bytes. Every error says what to do. */
async function fetchHub(
  source: HubSource,
  url: string,
  { signal, token }: HubAccess,
  maxBytes?: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const headers: Record<string, string> =
    token === undefined ? {} : { authorization: `Bearer ${token}` }
  const read = async (response: Response, pieces: Pieces) => {
    if (response.ok) return readAll(pieces)
    throw hubStatusError(source, response)
  }
  try {
    return await fetchBounded(url, { signal, headers, maxBytes }, read)
  } catch (cause) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    if (cause instanceof InoriginError) throw cause
    const what = `${source.repository} could not be looked up: ${source.host} cannot be reached`
    const todo =
      'Try again later, set "host" of the catalog entry to a mirror, or serve the files ' +
      'yourself and list them in the catalog.'
    throw unreachableError(`${what} (${String(cause)}). ${todo}`, cause)
  }
}

export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isObjectOrArray(json) ? json : null
  } catch {
    return null
  }
}

function hubStatusError(source: HubSource, { status, headers }: Response): InoriginError {
  const { repository, revision, host } = source
  if (status === 404) {
    const what = `${host} has no repository ${repository} with the revision ${revision}`
    const message = `${what}. Correct the catalog entry.`
    return new InoriginError('not_found', message, { code: 'hub_not_found' })
  }
  if (status === 401 || status === 403) {
    const what = `${host} does not allow access to ${repository}, or has no such repository`
    const todo = 'Correct the catalog entry, or download the files and list them by URL.'
    return new InoriginError('unavailable', `${what}. ${todo}`, { code: 'hub_refused' })
  }
  const wait = Number(headers.get('retry-after'))
  const message = `${host} returned ${status} for ${repository}. Try again.`
  return unreachableError(message, undefined, wait > 0 ? wait : 5)
}

function invalidHubResponseError({ host, repository }: HubSource, what: string): InoriginError {
  const todo = 'Set "host" of the catalog entry to the hub itself or another mirror.'
  return new InoriginError('unavailable', `${host} ${what} (${repository}). ${todo}`, {
    code: 'hub_unreachable',
    details: { isStrange: true },
  })
}

export const unreachableError = (message: string, cause?: unknown, retryAfter = 5): InoriginError =>
  new InoriginError('unavailable', message, { code: 'hub_unreachable', retryAfter, cause })

export const unfitError = (what: string, where: 'files' | 'server'): InoriginError => {
  const message = `${what}. Correct the catalog entry, or the ${where}.`
  return new InoriginError('unavailable', message, { code: 'hub_unfit' })
}

// Fetches data for look-ups with limits on time and length, since the servers are not trusted.

/** Time in milliseconds that a server may take to respond, or to send the next piece. */
const STALL_TIMEOUT_MS = 30_000

/** Maximum length in bytes of a file to read into memory. No list, text or library is longer. */
export const MAX_SMALL_FILE_BYTES = 64 * 2 ** 20

export type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>

/**
 * Fetches a URL and resolves with the result of `read`, after which the request ends. Rejects with
 * `unavailable` if the body is too long, with an `Error` if no data arrives in time, and as `fetch`
 * does.
 */
export async function fetchBounded<T>(
  url: string,
  {
    signal,
    headers,
    maxBytes = MAX_SMALL_FILE_BYTES,
  }: {
    signal: AbortSignal
    headers?: Record<string, string>
    maxBytes?: number | undefined
  },
  read: (response: Response, pieces: Pieces) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  const giveUp = () => ending.abort(new Error(`no data arrived for ${STALL_TIMEOUT_MS / 1000} s`))
  let timer = setTimeout(giveUp, STALL_TIMEOUT_MS)
  async function* piecesOf({ body }: Response): Pieces {
    const reader = body?.getReader()
    let bytes = 0
    for (;;) {
      const piece = (await reader?.read())?.value
      if (!piece) return
      clearTimeout(timer)
      timer = setTimeout(giveUp, STALL_TIMEOUT_MS)
      bytes += piece.length
      if (bytes > maxBytes)
        throw unfitError(`${url} sent more than the limit of ${maxBytes} bytes`, 'server')
      yield piece
    }
  }
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, ending.signal]) })
    return await read(response, piecesOf(response))
  } finally {
    clearTimeout(timer)
    ending.abort()
  }
}

export async function readAll(pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const piece of pieces) parts.push(piece)
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}
