/** Looks up models in repositories of a hub: language models, and predictors by their files. */
import {
  type HubAccess,
  openRepository,
  parseJsonObject,
  type Repository,
  type ResolvedHub,
  resolveRepository,
  toFileUrl,
} from '../catalog/hub/resolve-hub.ts'
import { type HubFile, PRECISION_SUFFIXES } from '../catalog/hub/variants.ts'
import type { HubSource, Implementation, Resource } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { Folder, OpenFile } from './folder.ts'
import { isCausal, planLayoutPredictor } from './layout.ts'
import type { OnnxModel } from './model.ts'
import { type Item, type Plan, readChecked } from './plan.ts'
import { RemoteReader } from './remote-file.ts'
import { architectureOf, type Config } from './tasks/files.ts'

/** Bytes of a graph that are read at once. Most tensors of its weights are longer and left out. */
const READ_BYTES = 2 ** 18

/**
 * Looks up the repository of an entry. Rejects with `unavailable` if the hub cannot be reached, or if
 * the repository contains no supported model.
 */
export async function resolveHub(source: HubSource, access: HubAccess): Promise<ResolvedHub> {
  const repository = await openRepository(source, access)
  return resolveFiles(source, repository, ({ path, bytes }) => {
    const url = toFileUrl(source, repository.revision, path)
    return new RemoteReader({ url, bytes }, access, READ_BYTES)
  })
}

/**
 * Resolves with the language model or the predictor in a repository. `openGraph` opens a graph, of which
 * only a part is read. Rejects with `unavailable` if there is none.
 */
export async function resolveFiles(
  source: HubSource,
  repository: Repository,
  openGraph: (file: HubFile) => OpenFile,
): Promise<ResolvedHub> {
  const { files, read } = repository
  const configFile = files.find(({ path }) => path === 'config.json')
  const config = configFile ? parseJsonObject(await read(configFile)) : null
  if (!config || isLanguageModel(config, files)) return resolveRepository(source, repository)
  const known = new Map(files.map((file) => [file.path, file]))
  const folder: Folder = {
    nameOf: (path) => (path === '' ? source.repository : `${source.repository}/${path}`),
    sizeOf: (path) => known.get(path)?.bytes,
    async open(path) {
      const file = known.get(path)
      if (!file) throw new InoriginError('internal', `${source.repository} has no ${path}.`)
      return path.endsWith('.onnx') ? openGraph(file) : openBytes(await read(file))
    },
  }
  const plan = await planPredictor(folder, source, files)
  if (!plan) return resolveRepository(source, repository)
  const { entry, implementations } = plan
  if (entry.type !== 'predictor') throw new InoriginError('internal', 'The plan is no predictor.')
  const { name: _, type: __, ...predictor } = entry
  const { revision, created, license, languages } = repository
  return {
    revision,
    created,
    license,
    languages,
    context: undefined,
    predictor,
    implementations: await listFiles(implementations, source, repository),
  }
}

/**
 * Returns `true` if the files are those of a language model, as far as their names tell. Models that see
 * images generate text, too.
 */
function isLanguageModel(config: Config, files: readonly HubFile[]): boolean {
  const has = (name: string): boolean => files.some(({ path }) => path.startsWith(`onnx/${name}`))
  const isDecoder = has('decoder_') && !has('encoder_')
  return architectureOf(config) === '' || isCausal(config) || isDecoder
}

async function planPredictor(
  folder: Folder,
  { repository, dtypes, precision }: HubSource,
  files: readonly HubFile[],
): Promise<Plan | null> {
  const options = {
    devices: ['webgpu', 'wasm'],
    dtypes,
    precision,
    tensors: new Set<string>(),
    keep: (name: string): string => name,
    readGraph: createGraphReader(files),
  } as const
  try {
    return await planLayoutPredictor(folder, files, options)
  } catch (cause) {
    const { kind, message } = InoriginError.from(cause)
    if (kind !== 'invalid_request') throw cause
    const what = `${repository} cannot run in a browser. ${message}`
    throw new InoriginError('unavailable', what, { code: 'hub_unfit', cause })
  }
}

/**
 * Creates a reader of graphs on a server. The precisions of a repository are conversions of one graph,
 * and only those in 16 bits may have other tensors. So it reads the smallest graph of each kind, since
 * each tensor of weights that it skips takes a request.
 */
function createGraphReader(files: readonly HubFile[]): typeof readChecked {
  const graphs = files.filter(({ path }) => /^onnx\/[^/]+\.onnx$/.test(path))
  const models = new Map<string, Promise<OnnxModel>>()
  return async (folder, path) => {
    const kindOf = (name: string): boolean => name.endsWith('16.onnx')
    const alike = graphs.filter(
      (file) => kindOf(file.path) === kindOf(path) && stemOf(file.path) === stemOf(path),
    )
    const [smallest] = alike.toSorted((one, other) => one.bytes - other.bytes)
    const read = smallest?.path ?? path
    const model = models.get(read) ?? readChecked(folder, read)
    models.set(read, model)
    const name = path.slice(path.lastIndexOf('/') + 1)
    const data = files.filter((file) => file.path.startsWith(path) && file.path !== path)
    const externalData = data.map((file) => name + file.path.slice(path.length))
    return { ...(await model), externalData }
  }
}

/** Returns the name of a graph without its precision, such as `model` for `onnx/model_q4f16.onnx`. */
function stemOf(path: string): string {
  const name = path.replace(/^.*\//, '').replace(/\.onnx$/, '')
  const suffix = PRECISION_SUFFIXES.find((one) => name.endsWith(one)) ?? ''
  return suffix === '' ? name : name.slice(0, -suffix.length)
}

/** Resolves with the implementations with the URLs and digests of their files. */
async function listFiles(
  planned: Plan['implementations'],
  source: HubSource,
  { revision, files, sha256 }: Repository,
): Promise<Implementation[]> {
  const known = new Map(files.map((file) => [file.path, file]))
  const digests = new Map<string, Promise<string>>()
  const toResource = async ({ type, name, path }: Item): Promise<Resource> => {
    const file = known.get(path)
    if (!file) throw new InoriginError('internal', `${source.repository} has no ${path}.`)
    const digest = digests.get(path) ?? sha256(file)
    digests.set(path, digest)
    const url = toFileUrl(source, revision, path)
    return { type, url, name, bytes: file.bytes, sha256: await digest }
  }
  return Promise.all(
    planned.map(async ({ items, ...described }) => ({
      ...described,
      resources: await Promise.all(items.map(toResource)),
    })),
  )
}

const openBytes = (bytes: Uint8Array): OpenFile => ({
  size: bytes.length,
  read: async (from, to) => bytes.subarray(from, to),
  close: async () => undefined,
})
