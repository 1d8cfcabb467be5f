/**
 * Looks up GGUF files on servers. The head of a file says what a catalog entry needs, so a model that
 * cannot run is refused before its weights are downloaded.
 */
import {
  type HubAccess,
  openRepository,
  type ResolvedHub,
  toFileUrl,
  unfitError,
} from '../catalog/hub/resolve-hub.ts'
import { sumBytes } from '../catalog/memory-bytes.ts'
import { fetchWeights, type FileSink } from '../catalog/mlc/resolve-mlc.ts'
import type { GgufSource, HubSource, Implementation, Resource } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import { type Folder, listPartPaths } from './folder.ts'
import { planGguf } from './gguf.ts'
import { fetchSize, type RemoteFile, RemoteReader } from './remote-file.ts'

/**
 * Looks up the GGUF file that a source names in its repository. Rejects with `unavailable` if the hub
 * cannot be reached, or if there is no such file or one that cannot run.
 */
export async function resolveGgufRepository(
  source: HubSource & { file: string },
  access: HubAccess,
): Promise<ResolvedHub> {
  const { repository: owner, file, precision } = source
  const { files, sha256, ...found } = await openRepository(source, access)
  const known = new Map(files.map((one) => [one.path, one]))
  const remote = (path: string): RemoteFile => {
    const bytes = known.get(path)?.bytes
    if (bytes !== undefined) return { url: toFileUrl(source, found.revision, path), bytes }
    const others = [...known.keys()].filter((one) => /\.gguf$/i.test(one))
    const list = others.length > 0 ? `its GGUF files are ${others.join(', ')}` : 'it has none'
    throw unfitError(`${owner} has no ${path}: ${list}`, 'files')
  }
  const parts = new Map(listPartPaths(file).map((path) => [path, remote(path)]))
  const plan = await planRemote(owner, parts, access)
  const resources: Resource[] = []
  for (const [name, { url, bytes }] of parts) {
    const one = known.get(name)
    resources.push({ type: 'gguf', url, name, bytes, sha256: one ? await sha256(one) : '' })
  }
  const { revision, created, license, languages } = found
  return { ...plan(resources, precision), revision, created, ...card({ license, languages }) }
}

/** Returns what the card of a repository says, which goes before what its files say. */
const card = (stated: Pick<ResolvedHub, 'license' | 'languages'>): typeof stated =>
  Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== undefined))

/** Access to a server that does not say the digest of its files. */
interface UrlAccess {
  signal: AbortSignal
  /** Storage for the files, which are read for their digests. Default: nothing is stored. */
  sink?: FileSink
}

/**
 * Looks up the GGUF file at a URL: reads its head, then all of it for its digest. Rejects with
 * `unavailable` if the server cannot be reached, or if there is no such file or one that cannot run.
 */
export async function resolveGgufUrl(
  { url, precision }: GgufSource,
  access: UrlAccess,
): Promise<ResolvedHub> {
  const { pathname } = new URL(url)
  const folder = pathname.slice(0, pathname.lastIndexOf('/') + 1)
  const parts = new Map<string, RemoteFile>()
  for (const path of listPartPaths(pathname)) {
    const part = new URL(url)
    part.pathname = path
    const name = decodeURIComponent(path.slice(folder.length))
    parts.set(name, { url: part.href, bytes: await fetchSize(part.href, access) })
  }
  const plan = await planRemote(new URL(folder, url).href, parts, access)
  await access.sink?.reserve(sumBytes([...parts.values()]))
  const resources: Resource[] = []
  for (const [name, { url: at, bytes }] of parts) {
    const found = await fetchWeights(at, bytes, access)
    if (found?.bytes !== bytes) throw unfitError(`${at} has changed while it was read`, 'server')
    const resource: Resource = { type: 'gguf', url: at, name, bytes, sha256: found.sha256 }
    if (found.content) await access.sink?.store(resource, found.content)
    resources.push(resource)
  }
  return { ...plan(resources, precision), revision: null, created: undefined }
}

/** Resolves with a function that returns the model, once the digests of its parts are known. */
async function planRemote(
  place: string,
  parts: ReadonlyMap<string, RemoteFile>,
  access: HubAccess,
): Promise<
  (
    resources: Resource[],
    precision: HubSource['precision'],
  ) => Omit<ResolvedHub, 'revision' | 'created'>
> {
  const folder: Folder = {
    nameOf: (path) => (path === '' ? place : `${place.replace(/\/$/, '')}/${path}`),
    sizeOf: (path) => parts.get(path)?.bytes,
    open: async (path) => new RemoteReader(parts.get(path) ?? { url: '', bytes: 0 }, access),
  }
  const options = { devices: ['webgpu', 'wasm'], dtypes: null, tensors: new Set<string>() } as const
  const [first = ''] = parts.keys()
  const keep = (name: string): string => name
  const { entry, implementations } = await planGguf(folder, first, { ...options, keep }).catch(
    (cause: unknown) => {
      const { kind, message } = InoriginError.from(cause)
      if (kind !== 'invalid_request') throw cause
      throw new InoriginError('unavailable', message, { code: 'hub_unfit', cause })
    },
  )
  if (entry.type !== 'model') throw unfitError(`${place} has no language model`, 'files')
  const { name, license, languages, parameters, quantization, capabilities } = entry
  return (resources, precision) => ({
    name,
    context: entry.maxInputTokens,
    ...card({ license, languages }),
    parameters,
    quantization,
    capabilities,
    implementations: implementations.map((planned): Implementation => {
      const { items: _, ...described } = planned
      const exact = precision === 'exact' && { precision }
      return { ...described, ...exact, resources }
    }),
  })
}
