/** Fills an app's public folder with the files that `serve()` looks for. */
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { InoriginError } from '../error.ts'
import { type Content, refuseLinks, statAt, writeBelow } from './write.ts'

export interface InitOptions {
  /** The folder whose files the app's web server serves. Made when missing. */
  publicDir: string
  /** File name of the service worker script in that folder; `null` writes none: the app has its own. */
  sw: string | null
  /** Whether the embedded language model is copied too. */
  guide: boolean
  /** Whether WebLLM is copied too, which runs models that MLC compiled. */
  mlc: boolean
  /** The built package: its `dist` folder. */
  dist: string
  /** The folder of onnxruntime-web that holds the wasm builds. */
  runtime: string
}

export interface InitResult {
  script: string | null
  folder: string
  /** Files written, and their bytes together. */
  files: number
  bytes: number
  /** Files of an earlier version that were deleted, relative to `folder`. */
  removed: readonly string[]
}

/** How the name of the chunk begins that is WebLLM, and the catalog of its models. */
const MLC = 'mlc-'
const MLC_CATALOG = 'catalogs/mlc.json'
/** Whose model `--no-guide` leaves out. */
const GUIDE = '@inorigin/guide'
const SCRIPTS = ['index.js', 'worker.js', 'model-worker.js', 'catalog.schema.json', 'licenses.md']
/** The builds that are imported; the fourth, jsep, is not. */
const RUNTIME = ['.jspi', '.asyncify', ''].flatMap((build) =>
  ['mjs', 'wasm'].map((type) => `ort-wasm-simd-threaded${build}.${type}`),
)
/** The folder beside the script. */
const FOLDER = 'inorigin'
/** In the folder, lists what was written there, so that a refresh deletes its own files only. */
const LIST = 'files.json'
/** How the first line of our service worker script begins. */
const MARK = '/*! inorigin '

interface CatalogFile {
  entries: { tag: string; implementations?: { resources: { url: string }[] }[] }[]
}

/**
 * Writes the service worker script and the folder `inorigin/` beside it.
 *
 * @throws InoriginError `invalid_request` when a script that is not ours or a link is in the way, or the
 * folder cannot be written; `unavailable` when the package or onnxruntime-web is incomplete.
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
  // Last: a page that finds the script finds everything else.
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
      // What others ask to be kept with copies of what a model was learnt from.
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
    `${script} is there already and is not ours, so it was left alone. If your app owns it, call ` +
      "attach() of 'inorigin/sw' in it and run this with --own-sw. Otherwise choose another name, " +
      `\`--sw inorigin-${basename(script)}\`.`,
  )
}

/** Deletes a file of an earlier version, and its folder when that leaves it empty. */
function remove(folder: string, name: string): boolean {
  const path = join(folder, name)
  if (!statAt(path)?.isFile()) return false
  rmSync(path)
  for (let at = dirname(path); at !== folder && readdirSync(at).length === 0; at = dirname(at)) {
    rmdirSync(at)
  }
  return true
}

/** What an earlier run wrote. */
function listed(folder: string): string[] {
  const path = join(folder, LIST)
  if (!existsSync(path)) return []
  try {
    const { files } = JSON.parse(read(path)) as { files: unknown[] }
    return files.filter((name) => typeof name === 'string').filter((name) => isInside(folder, name))
  } catch (cause) {
    const what = `${path} is not what \`inorigin init\` wrote there. Delete it, then run this again.`
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

/** Paths of all files below a folder, relative to it, with forward slashes. */
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
