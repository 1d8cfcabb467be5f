/** Copies the files that `serve()` needs into an app's public folder. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { refuse } from '../draft/refuse.ts'
import { InoriginError } from '../error.ts'
import type { FileList, ListedFile } from '../types/index.ts'
import { type Content, assertNoLinks, findStats, writeBelow } from './write-file.ts'

export interface InitOptions {
  /** Folder that the app's web server serves. It is created if missing. */
  publicDir: string
  /** File name of the service worker script in that folder; `null` to write none. */
  sw: string | null
  /** File name of the script of an earlier run, which is deleted if it has another name now. */
  formerSw?: string | null
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
  /** Deleted files of an earlier version, relative to `folder`; a script relative to its parent. */
  removed: readonly string[]
}

/** Prefix of the names of WebLLM's chunks. */
const MLC_CHUNK_PREFIX = 'mlc-'
const MLC_CATALOG = 'catalogs/mlc.json'
const EMBEDDED_CATALOG = 'models/catalog.json'
/** Tag of the model that `--no-guide` omits. */
const GUIDE_TAG = '@inorigin/guide'
const SCRIPTS = ['index.js', 'worker.js', 'model-worker.js', 'catalog.schema.json', 'licenses.md']
/** Builds that are loaded. The fourth build, jsep, is not used. */
const RUNTIME_FILES = ['.jspi', '.asyncify', ''].flatMap((build) =>
  ['mjs', 'wasm'].map((type) => `ort-wasm-simd-threaded${build}.${type}`),
)
/** Name of the folder beside the script. */
const INORIGIN_FOLDER = 'inorigin'
/**
 * Name of the file that lists the written files. A refresh deletes only those, and the service
 * worker tells by it which of them it keeps, and whether there is a new version.
 */
const FILE_LIST = 'files.json'
/** Start of the first line of the package's service worker script. */
const SCRIPT_MARK = '/*! inorigin '

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
  const { publicDir, dist, sw, formerSw = null } = options
  assertParentExists(publicDir)
  const script = sw === null ? null : join(publicDir, sw)
  if (sw !== null) assertOwnScript(publicDir, sw)
  const folder = join(publicDir, INORIGIN_FOLDER)
  const sources = collectSources(options)
  for (const name of [FILE_LIST, ...sources.keys()])
    assertNoLinks(publicDir, `${INORIGIN_FOLDER}/${name}`)
  const before = readFileList(folder)
  for (const name of before) assertNoLinks(publicDir, `${INORIGIN_FOLDER}/${name}`)

  const write = (name: string, content: Content) =>
    writeBelow(publicDir, `${INORIGIN_FOLDER}/${name}`, content)
  const written = [...sources].map(([name, source]) => write(name, source))
  const files = Array.from(sources, ([name, source]) => describeFile(name, source))
  const list: FileList = { written_by: 'inorigin init', files }
  written.push(write(FILE_LIST, { text: `${JSON.stringify(list, null, 2)}\n` }))
  const removed = before.filter((name) => !sources.has(name) && removeFile(folder, name))
  // The script comes last, so that a page that finds it finds the other files too.
  if (sw !== null) written.push(writeBelow(publicDir, sw, { from: join(dist, 'sw.js') }))
  if (formerSw !== null && formerSw !== sw && isOwnScript(join(publicDir, formerSw))) {
    rmSync(join(publicDir, formerSw))
    removed.push(formerSw)
  }

  const bytes = written.reduce((sum, length) => sum + length, 0)
  return { script, folder, files: written.length, bytes, removed }
}

function collectSources({ dist, runtime, guide, mlc }: InitOptions): Map<string, Content> {
  const sources = new Map<string, Content>()
  const chunks = listFilesBelow(join(dist, 'chunks'))
    .filter((name) => mlc || !name.startsWith(MLC_CHUNK_PREFIX))
    .map((name) => `chunks/${name}`)
  const scripts = [...SCRIPTS, ...chunks, ...(mlc ? [MLC_CATALOG] : [])]
  for (const name of scripts) sources.set(name, { from: join(dist, name) })
  for (const name of RUNTIME_FILES) sources.set(`ort/${name}`, { from: join(runtime, name) })

  const catalog = JSON.parse(readText(join(dist, EMBEDDED_CATALOG))) as CatalogFile
  const entries = catalog.entries.filter((entry) => guide || entry.tag !== GUIDE_TAG)
  sources.set(EMBEDDED_CATALOG, {
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
  for (const source of sources.values()) if ('from' in source) assertExists(source.from)
  return sources
}

function describeFile(name: string, source: Content): ListedFile {
  const content = 'from' in source ? readFileSync(source.from) : source.text
  return {
    name,
    sha256: createHash('sha256').update(content).digest('hex'),
    precache: isPrecached(name),
  }
}

/** Returns `true` for our scripts and the catalog: 0.7 MB compressed, which any feature may need. */
function isPrecached(name: string): boolean {
  if (name.startsWith(`chunks/${MLC_CHUNK_PREFIX}`)) return false
  return name === EMBEDDED_CATALOG || /^(chunks\/)?[^/]+\.js$/.test(name)
}

function assertOwnScript(publicDir: string, sw: string): void {
  assertNoLinks(publicDir, sw)
  const script = join(publicDir, sw)
  if (!existsSync(script) || isOwnScript(script)) return
  throw refuse(
    `${script} exists and was not written by inorigin, so it was not changed.`,
    "If your app owns it, call attach() of 'inorigin/sw' in it and run this with --own-sw. " +
      `Otherwise choose another name, \`--sw inorigin-${basename(script)}\`.`,
  )
}

/** Returns `true` for a file that an earlier run wrote as the service worker script. */
function isOwnScript(path: string): boolean {
  return (findStats(path)?.isFile() ?? false) && readText(path).startsWith(SCRIPT_MARK)
}

/** Throws for a folder below one that does not exist, which is more likely a mistake in the path. */
function assertParentExists(publicDir: string): void {
  const parent = dirname(publicDir)
  if (existsSync(parent)) return
  throw refuse(`There is no folder ${parent}.`, 'Create it first, or correct the path.')
}

/** Deletes a file of an earlier version, and its folders if they become empty. */
function removeFile(folder: string, name: string): boolean {
  const path = join(folder, name)
  if (!findStats(path)?.isFile()) return false
  rmSync(path)
  for (let at = dirname(path); at !== folder && readdirSync(at).length === 0; at = dirname(at)) {
    rmdirSync(at)
  }
  return true
}

/** Returns the files that an earlier run wrote. */
function readFileList(folder: string): string[] {
  const path = join(folder, FILE_LIST)
  if (!existsSync(path)) return []
  try {
    const { files } = JSON.parse(readText(path)) as { files: Partial<ListedFile>[] }
    return files
      .map(({ name }) => name)
      .filter((name) => typeof name === 'string')
      .filter((name) => isInside(folder, name))
  } catch (cause) {
    const what = `${path} is not a file list of \`inorigin init\`.`
    throw refuse(what, 'Delete it, then run this again.', cause)
  }
}

function isInside(folder: string, name: string): boolean {
  return !relative(folder, join(folder, name)).startsWith('..')
}

function assertExists(path: string): void {
  if (existsSync(path)) return
  const what = `${path} is missing, so the installation is not complete.`
  throw new InoriginError('unavailable', `${what} Install inorigin and onnxruntime-web again.`)
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const what = `${path} cannot be read: ${InoriginError.from(cause).message}.`
    throw new InoriginError('invalid_request', what, { cause })
  }
}

/** Returns the paths of all files below a folder, relative to it, with forward slashes. */
function listFilesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.split(sep).join('/'))
    .toSorted()
}
