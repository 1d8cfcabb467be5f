/** The library's files that a page needs: all that lies in `inorigin/`. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, sep } from 'node:path'
import type { CatalogDocument } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { FileList } from '../types/index.ts'
import { RUNTIME_PARTS, SPLIT_RUNTIME_FILE } from '../values/asset-cache.ts'
import { type Content, readContent } from './write-file.ts'

export interface LibraryChoice {
  guide: boolean
  /** `true` to include WebLLM, which runs models that MLC compiled. */
  mlc: boolean
  webgpu: boolean
  dist: string
  runtime: string
}

/** Name of the folder beside the service worker script. */
export const INORIGIN_FOLDER = 'inorigin'

/**
 * Name of the file that lists the others. A refresh deletes only those, and the service worker tells
 * by it which of them it keeps, and whether there is a new version.
 */
export const FILE_LIST = 'files.json'

/** Prefix of the names of WebLLM's chunks. */
const MLC_CHUNK_PREFIX = 'mlc-'
const EMBEDDED_CATALOG = 'models/catalog.json'
/** Tags of the language models that `--no-guide` omits. */
const GUIDE_TAGS = ['@inorigin/guide', '@inorigin/glance']
const SCRIPTS = ['index.js', 'worker.js', 'model-worker.js', 'vocabulary-worker.js']
const OTHERS = ['catalog.schema.json', 'licenses.md']
/** Engine of constraints, which the first constrained request loads. */
const CONSTRAINT_ENGINE = 'llguidance.wasm'
/** Builds for WebGPU. A browser loads the one that it can run. The fourth build, jsep, is not used. */
const GPU_BUILDS = ['.jspi', '.asyncify']
const GPU_CHUNK_PREFIXES = ['ort.jspi.', 'ort.webgpu.']

/**
 * Returns the files of the folder by their names, in the order in which they are written. Throws
 * `unavailable` if the package or onnxruntime-web is incomplete.
 */
export function collectLibraryFiles(choice: LibraryChoice): Map<string, Content> {
  const { dist, runtime, guide, mlc, webgpu } = choice
  const sources = new Map<string, Content>()
  const omitted = [...(mlc ? [] : [MLC_CHUNK_PREFIX]), ...(webgpu ? [] : GPU_CHUNK_PREFIXES)]
  const chunks = listFilesBelow(join(dist, 'chunks'))
    .filter((name) => !omitted.some((prefix) => name.startsWith(prefix)))
    .map((name) => `chunks/${name}`)
  const scripts = [...SCRIPTS, ...OTHERS, CONSTRAINT_ENGINE, ...chunks]
  for (const name of [...scripts, ...(mlc ? ['catalogs/mlc.json'] : [])])
    sources.set(name, { from: join(dist, name) })
  for (const [name, source] of listRuntimeFiles(runtime, webgpu)) sources.set(`ort/${name}`, source)

  const catalog = JSON.parse(readText(join(dist, EMBEDDED_CATALOG))) as CatalogDocument
  const entries = catalog.entries.filter((entry) => guide || !GUIDE_TAGS.includes(entry.tag))
  const devices = webgpu ? undefined : ['wasm']
  sources.set(EMBEDDED_CATALOG, { text: toText({ ...catalog, devices, entries }) })
  const resources = entries.flatMap(({ implementations = [] }) =>
    implementations.flatMap((one) => one.resources),
  )
  for (const { url } of resources.filter((one) => !URL.canParse(one.url))) {
    sources.set(`models/${url}`, { from: join(dist, 'models', url) })
    // Licenses of training data may require their notice to stay with copies of the model.
    const notice = `models/${url.split('/', 1)[0] ?? ''}/NOTICE.md`
    if (existsSync(join(dist, notice))) sources.set(notice, { from: join(dist, notice) })
  }
  for (const source of sources.values()) if ('from' in source) assertExists(source.from)
  return sources
}

const toText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/**
 * Returns `true` for our scripts, the engine of constraints and the catalog: 1.3 MB compressed, which
 * any feature may need.
 */
function isPrecached(name: string): boolean {
  if (name.startsWith(`chunks/${MLC_CHUNK_PREFIX}`)) return false
  return [EMBEDDED_CATALOG, CONSTRAINT_ENGINE].includes(name) || /^(chunks\/)?[^/]+\.js$/.test(name)
}

/** Returns the text of the list of these files. Reads all of them. */
export function serializeFileList(sources: ReadonlyMap<string, Content>): string {
  const files = Array.from(sources, ([name, source]) => ({
    name,
    sha256: createHash('sha256').update(readContent(source)).digest('hex'),
    precache: isPrecached(name),
  }))
  return toText({ written_by: 'inorigin init', files } satisfies FileList)
}

/** Returns the files of `ort/` by their names there; one of them in parts. */
export function listRuntimeFiles(runtime: string, webgpu: boolean): Map<string, Content> {
  const names = [...(webgpu ? GPU_BUILDS : []), ''].flatMap((build) =>
    ['mjs', 'wasm'].map((type) => `ort-wasm-simd-threaded${build}.${type}`),
  )
  return new Map(
    names.flatMap((name): [string, Content][] => {
      const from = join(runtime, name)
      if (name !== SPLIT_RUNTIME_FILE) return [[name, { from }]]
      assertExists(from)
      const partBytes = Math.ceil(statSync(from).size / RUNTIME_PARTS.length)
      return RUNTIME_PARTS.map((part, index) => [
        part,
        { from, start: index * partBytes, end: (index + 1) * partBytes },
      ])
    }),
  )
}

function assertExists(path: string): void {
  if (existsSync(path)) return
  const what = `${path} is missing, so the installation is not complete.`
  throw new InoriginError('unavailable', `${what} Install inorigin and onnxruntime-web again.`)
}

export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const what = `${path} cannot be read: ${InoriginError.from(cause).message}.`
    throw new InoriginError('invalid_request', what, { cause })
  }
}

function listFilesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.split(sep).join('/'))
    .toSorted()
}

/** Folder `dist` of the package, which holds the built command. */
export const DIST = import.meta.dirname

/** Returns the folder of onnxruntime-web's builds as installed for this package. */
export function findRuntime(): string {
  try {
    const file = 'onnxruntime-web/ort-wasm-simd-threaded.wasm'
    return dirname(createRequire(import.meta.url).resolve(file))
  } catch (cause) {
    const what = 'onnxruntime-web, which inorigin depends on, is not installed.'
    throw new InoriginError('unavailable', `${what} Run npm install, then this again.`, { cause })
  }
}

export const readVersion = (): string =>
  (JSON.parse(readText(join(DIST, '..', 'package.json'))) as { version: string }).version
