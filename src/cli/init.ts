/** Copies the files that `serve()` needs into an app's public folder. */
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { InoriginError } from '../error.ts'
import { type Content, refuseLinks, statAt, writeBelow } from './write.ts'

export interface InitOptions {
  /** Folder that the app's web server serves. It is created if missing. */
  publicDir: string
  /** File name of the service worker script in that folder; `null` to write none. */
  sw: string | null
  /** `true` to copy the embedded language model. */
  guide: boolean
  /** `true` to copy WebLLM, which runs models that MLC compiled. */
  mlc: boolean
  /** Folder `dist` of the built package. */
  dist: string
  /** Folder of onnxruntime-web that contains the wasm builds. */
  runtime: string
}

export interface InitResult {
  script: string | null
  folder: string
  /** Number of files written. `bytes` is their total length. */
  files: number
  bytes: number
  /** Deleted files of an earlier version, relative to `folder`. */
  removed: readonly string[]
}

/** Prefix of the names of WebLLM's chunks. */
const MLC = 'mlc-'
const MLC_CATALOG = 'catalogs/mlc.json'
/** Tag of the model that `--no-guide` omits. */
const GUIDE = '@inorigin/guide'
const SCRIPTS = ['index.js', 'worker.js', 'model-worker.js', 'catalog.schema.json', 'licenses.md']
/** Builds that are loaded. The fourth build, jsep, is not used. */
const RUNTIME = ['.jspi', '.asyncify', ''].flatMap((build) =>
  ['mjs', 'wasm'].map((type) => `ort-wasm-simd-threaded${build}.${type}`),
)
/** Name of the folder beside the script. */
const FOLDER = 'inorigin'
/** Name of the file that lists the written files, so that a refresh deletes only those. */
const LIST = 'files.json'
/** Start of the first line of the package's service worker script. */
const MARK = '/*! inorigin '

interface CatalogFile {
  entries: { tag: string; implementations?: { resources: { url: string }[] }[] }[]
}

/**
 * Writes the service worker script and the folder `inorigin/` beside it.
 *
 * @throws InoriginError `invalid_request` if another script or a link is in the way, or if the
 * folder cannot be written; `unavailable` if the package or onnxruntime-web is incomplete.
 */
export function init(options: InitOptions): InitResult {
  const { publicDir, dist, sw } = options
  const script = sw === null ? null : join(publicDir, sw)
  if (sw !== null) refuseForeign(publicDir, sw)
  const folder = join(publicDir, FOLDER)
  const sources = collect(options)
  for (const name of [LIST, ...sources.keys()]) refuseLinks(publicDir, `${FOLDER}/${name}`)
  const before = listed(folder)
  for (const name of before) refuseLinks(publicDir, `${FOLDER}/${name}`)

  const write = (name: string, content: Content) =>
    writeBelow(publicDir, `${FOLDER}/${name}`, content)
  const written = [...sources].map(([name, source]) => write(name, source))
  const list = { written_by: 'inorigin init', files: [...sources.keys()] }
  written.push(write(LIST, { text: `${JSON.stringify(list, null, 2)}\n` }))
  const removed = before.filter((name) => !sources.has(name) && remove(folder, name))
  // The script comes last, so that a page that finds it finds the other files too.
  if (sw !== null) written.push(writeBelow(publicDir, sw, { from: join(dist, 'sw.js') }))

  const bytes = written.reduce((sum, length) => sum + length, 0)
  return { script, folder, files: written.length, bytes, removed }
}

function collect({ dist, runtime, guide, mlc }: InitOptions): Map<string, Content> {
  const sources = new Map<string, Content>()
  const chunks = filesBelow(join(dist, 'chunks'))
    .filter((name) => mlc || !name.startsWith(MLC))
    .map((name) => `chunks/${name}`)
  const scripts = [...SCRIPTS, ...chunks, ...(mlc ? [MLC_CATALOG] : [])]
  for (const name of scripts) sources.set(name, { from: join(dist, name) })
  for (const name of RUNTIME) sources.set(`ort/${name}`, { from: join(runtime, name) })

  const catalog = JSON.parse(read(join(dist, 'models', 'catalog.json'))) as CatalogFile
  const entries = catalog.entries.filter((entry) => guide || entry.tag !== GUIDE)
  sources.set('models/catalog.json', {
    text: `${JSON.stringify({ ...catalog, entries }, null, 2)}\n`,
  })
  for (const { implementations = [] } of entries) {
    for (const { url } of implementations.flatMap((one) => one.resources)) {
      if (URL.canParse(url)) continue
      sources.set(`models/${url}`, { from: join(dist, 'models', url) })
      // Licenses of training data may require their notice to stay with copies of the model.
      const notice = `models/${url.split('/', 1)[0] ?? ''}/NOTICE.md`
      if (existsSync(join(dist, notice))) sources.set(notice, { from: join(dist, notice) })
    }
  }
  for (const source of sources.values()) if ('from' in source) demand(source.from)
  return sources
}

function refuseForeign(publicDir: string, sw: string): void {
  refuseLinks(publicDir, sw)
  const script = join(publicDir, sw)
  if (!existsSync(script) || read(script).startsWith(MARK)) return
  throw new InoriginError(
    'invalid_request',
    `${script} exists and was not written by inorigin, so it was not changed. If your app owns ` +
      "it, call attach() of 'inorigin/sw' in it and run this with --own-sw. Otherwise choose " +
      `another name, \`--sw inorigin-${basename(script)}\`.`,
  )
}

/** Deletes a file of an earlier version, and its folders if they become empty. */
function remove(folder: string, name: string): boolean {
  const path = join(folder, name)
  if (!statAt(path)?.isFile()) return false
  rmSync(path)
  for (let at = dirname(path); at !== folder && readdirSync(at).length === 0; at = dirname(at)) {
    rmdirSync(at)
  }
  return true
}

/** Returns the files that an earlier run wrote. */
function listed(folder: string): string[] {
  const path = join(folder, LIST)
  if (!existsSync(path)) return []
  try {
    const { files } = JSON.parse(read(path)) as { files: unknown[] }
    return files.filter((name) => typeof name === 'string').filter((name) => isInside(folder, name))
  } catch (cause) {
    const what = `${path} is not a file list of \`inorigin init\`. Delete it, then run this again.`
    throw new InoriginError('invalid_request', what, { cause })
  }
}

function isInside(folder: string, name: string): boolean {
  return !relative(folder, join(folder, name)).startsWith('..')
}

function demand(path: string): void {
  if (existsSync(path)) return
  const what = `${path} is missing, so the installation is not complete.`
  throw new InoriginError('unavailable', `${what} Install inorigin and onnxruntime-web again.`)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new InoriginError('invalid_request', `${path} cannot be read: ${reason(cause)}.`, {
      cause,
    })
  }
}

/** Returns the paths of all files below a folder, relative to it, with forward slashes. */
function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.split(sep).join('/'))
    .toSorted()
}

function reason(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
