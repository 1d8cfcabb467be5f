/** `inorigin add`: adds a model of the user, with its files, to the app's catalog. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import * as v from 'valibot'
import { getOwner } from '../catalog/find-entry.ts'
import type { Dtype, HubFile } from '../catalog/hub/variants.ts'
import { sumBytes } from '../catalog/memory-bytes.ts'
import type { CatalogDocument, Entry, Implementation, Resource } from '../catalog/schema.ts'
import { tagSchema } from '../catalog/value-schemas.ts'
import { type Kind, kindOf, planKind } from '../draft/kind.ts'
import type { Item, Plan } from '../draft/plan.ts'
import { refuse } from '../draft/refuse.ts'
import { type BindingWishes, createWishes, toImageOption } from '../draft/wishes.ts'
import { InoriginError } from '../error.ts'
import { CHUNK_BYTES } from '../store/db.ts'
import type { Device, Tag } from '../types/index.ts'
import { findInside, type ModelRoot, openFolder, openInside, openRoot } from './add/model-root.ts'
import { INORIGIN_FOLDER } from './library-files.ts'
import { validateDocument } from './project-options.ts'
import { type ExampleShapes, testPlan } from './onnx/test-plan.ts'
import { assertNoLinks, type Content, toTemporaryPath, writeBelow } from './write-file.ts'

export interface AddOptions {
  source: string
  tag: Tag
  publicDir: string
  name?: string | undefined
  devices: readonly Device[]
  dtypes: readonly Dtype[] | null
  /** Names of inputs to keep as tensors although they look like images. */
  tensors: readonly string[]
  wishes?: BindingWishes
  /** Maximum length of a file in bytes. Larger files are split. */
  maxFileBytes: number
  force: boolean
  dist: string
  runtime: () => string
  signal: AbortSignal
  /** Called for every step that can take long, with `done` of `total` bytes while copying. */
  onStep: (what: string, done?: number, total?: number) => void
}

/** Result of an addition, for its report. */
export interface AddResult {
  entry: Entry
  /** Path of the catalog. */
  catalog: string
  /** Place of the files, as the end of a sentence. */
  place: string
  /** Number of files, and their bytes. */
  files: number
  bytes: number
  /** Names of files that were split into parts. */
  splitFiles: string[]
  notes: readonly string[]
  shapes: ExampleShapes
  /** `true` if the app has the files of the library. */
  isReady: boolean
}

const CATALOG_FILE = 'catalog.json'
/** Name of the schema file beside the catalog, for editors. */
const SCHEMA_FILE = 'catalog.schema.json'

/**
 * Drafts an entry, copies its files and writes both into the app's catalog. Throws
 * `invalid_request` with instructions, and `aborted`. In both cases nothing has changed.
 */
export async function add(options: AddOptions): Promise<AddResult> {
  const { signal, onStep } = options
  const place = openCatalog(options)
  const { catalog, folder } = place

  onStep(`Reading ${options.source}`)
  const { root, files, ...kind } = findSource(options.source)
  const plan = await planKind(openFolder(root), kind, files, {
    ...options,
    tensors: new Set(options.tensors),
    wishes: options.wishes && createWishes(options.wishes),
    keep: (name) => `--tensor ${name}`,
    makeImage: toImageOption,
  })

  const all = plan.implementations.flatMap((one) => one.items)
  const items = [...new Map(all.map((one) => [one.name, one])).values()]
  const staging = toTemporaryPath(folder)
  try {
    const shapes = await testPlan(root, plan, options)
    const copied = await copyAll(root, items, staging, options)
    const entry = toEntry(plan, copied, options)
    await writeEntry(place, entry, options, () => rename(staging, folder))
    return {
      entry,
      catalog,
      place: `in ${folder}${sep}`,
      files: [...copied.values()]
        .map(({ bytes, partBytes = Infinity }) => Math.ceil(bytes / partBytes) || 1)
        .reduce((sum, parts) => sum + parts, 0),
      bytes: sumBytes(items),
      splitFiles: items.map(({ name }) => name).filter((name) => copied.get(name)?.partBytes),
      notes: plan.notes,
      shapes,
      isReady: place.isReady,
    }
  } catch (thrown) {
    await rm(staging, { recursive: true, force: true })
    // The owner's folder may have been created for this. It stays if it is not empty.
    await rmdir(dirname(folder)).catch(() => undefined)
    if (signal.aborted)
      throw new InoriginError('aborted', 'Interrupted. Nothing was added.', { cause: thrown })
    throw thrown
  }
}

type CatalogOptions = Pick<AddOptions, 'tag' | 'publicDir' | 'force' | 'dist' | 'signal'>

/** Place of an entry in the app: its catalog, and the folder of its files. */
interface CatalogPlace {
  /** Path of the catalog. */
  catalog: string
  /** Path of the folder. */
  folder: string
  document: CatalogDocument
  /** `true` if the app has the files of the library. */
  isReady: boolean
}

/** Opens the app's catalog for an entry. Throws `invalid_request` if it cannot be written. */
export function openCatalog({ tag, publicDir, force }: CatalogOptions): CatalogPlace {
  assertTag(tag)
  const home = join(publicDir, INORIGIN_FOLDER)
  const catalog = join(home, CATALOG_FILE)
  const folder = join(home, tag)
  for (const name of [CATALOG_FILE, SCHEMA_FILE, tag])
    assertNoLinks(publicDir, `${INORIGIN_FOLDER}/${name}`)
  const document = readAppCatalog(catalog)
  if (!force) assertNotPresent(document, folder, tag)
  return { catalog, folder, document, isReady: existsSync(join(home, 'index.js')) }
}

/**
 * Writes the entry into the catalog, in place of an earlier one of its tag, whose files it deletes.
 * `putFiles` puts the new ones into their folder. Rejects before anything has changed if the entry
 * is not valid.
 */
export async function writeEntry(
  { catalog, folder, document }: CatalogPlace,
  entry: CatalogDocument['entries'][number],
  { tag, publicDir, dist, signal }: CatalogOptions,
  putFiles: () => Promise<void>,
): Promise<void> {
  const { entries } = document
  const at = entries.findIndex((one) => one.tag === tag)
  const next = { ...document, entries: at < 0 ? [...entries, entry] : entries.with(at, entry) }
  // An invalid catalog could not be read again.
  validateDocument(next, catalog, false)
  signal.throwIfAborted()
  assertNoLinks(publicDir, `${INORIGIN_FOLDER}/${tag}`)
  await rm(folder, { recursive: true, force: true })
  await putFiles()
  const write = (name: string, content: Content) =>
    writeBelow(publicDir, `${INORIGIN_FOLDER}/${name}`, content)
  write(CATALOG_FILE, { text: `${JSON.stringify(next, null, 2)}\n` })
  const schema = join(dist, SCHEMA_FILE)
  if (existsSync(schema)) write(SCHEMA_FILE, { from: schema })
}

function assertTag(tag: string): void {
  const { issues, success } = v.safeParse(tagSchema, tag)
  if (!success) throw refuse(`--tag ${tag}: ${issues[0].message}.`, 'Use one such as @me/name.')
  if (getOwner(tag) !== 'inorigin') return
  throw refuse('Tags of @inorigin are reserved.', 'Use an owner name of your own.')
}

function assertNotPresent({ entries }: CatalogDocument, folder: string, tag: Tag): void {
  const todo = 'Choose another tag, or replace it with --force.'
  if (entries.some((entry) => entry.tag === tag))
    throw refuse(`${tag} is already in the catalog.`, todo)
  if (existsSync(folder)) throw refuse(`${folder} already exists.`, todo)
}

async function copyAll(
  root: ModelRoot,
  items: readonly Item[],
  folder: string,
  { maxFileBytes, signal, onStep }: AddOptions,
) {
  const total = sumBytes(items)
  const copied = new Map<string, CopiedFile>()
  let done = 0
  try {
    await mkdir(folder, { recursive: true })
    for (const item of items) {
      const onBytes = (bytes: number): void => onStep('Copying', (done += bytes), total)
      copied.set(item.name, await copyItem(root, item, folder, { maxFileBytes, signal, onBytes }))
    }
    return copied
  } catch (cause) {
    if (signal.aborted || cause instanceof InoriginError) throw cause
    const what = `The files cannot be copied to ${folder}: ${InoriginError.from(cause).message}.`
    throw refuse(what, 'Check the folder, its permissions and the space on its disk.', cause)
  }
}

function toEntry(plan: Plan, copied: ReadonlyMap<string, CopiedFile>, { tag, name }: AddOptions) {
  const { type, ...rest } = plan.entry
  const toResource = (item: Item): Resource => {
    const { bytes, sha256, ...splitFields } = copied.get(item.name) as CopiedFile
    const url = `${tag}/${toServedPath(item)}`
    return { type: item.type, url, name: item.name, bytes, sha256, ...splitFields }
  }
  const implementations = plan.implementations.map(({ items, ...planned }): Implementation => ({
    ...planned,
    resources: items.map(toResource),
  }))
  const created = new Date().toISOString().replace(/\.\d+/, '')
  return { type, tag, created, ...rest, name: name ?? rest.name, implementations } as Entry
}

/** Reads and checks the catalog; an empty one if there is none. Throws `invalid_request`. */
function readAppCatalog(path: string): CatalogDocument {
  if (!existsSync(path)) return { $schema: `./${SCHEMA_FILE}`, version: 1, entries: [] }
  const text = readFileSync(path, 'utf8')
  try {
    const document = JSON.parse(text) as CatalogDocument
    validateDocument(document, path, false)
    return document
  } catch (cause) {
    if (cause instanceof InoriginError) throw cause
    throw refuse(`${path} is not JSON: ${String(cause)}.`, 'Correct it first.', cause)
  }
}

// Copies files into the app, hashes them, and splits those that a host would reject.

type CopiedFile = Pick<Resource, 'bytes' | 'sha256' | 'chunks' | 'partBytes'>

const READ_PIECE_BYTES = 2 ** 20

/** Copies a file of the root to its place below a folder, and returns its fields for a catalog. */
export async function copyItem(
  root: ModelRoot,
  item: Item,
  folder: string,
  options: { maxFileBytes: number; signal: AbortSignal; onBytes: (bytes: number) => void },
): Promise<CopiedFile> {
  const { maxFileBytes, signal, onBytes } = options
  const to = join(folder, toServedPath(item))
  const isSplit = item.bytes > maxFileBytes
  const whole = createHash('sha256')
  const chunks: string[] = []
  let chunk = createHash('sha256')
  let at = 0
  let file: FileHandle | null = null
  const source = item.text === undefined ? await openInside(root, item.path) : null
  try {
    await mkdir(dirname(to), { recursive: true })
    const stream = source
      ? source.createReadStream({ highWaterMark: READ_PIECE_BYTES, signal })
      : [Buffer.from(item.text ?? '')]
    for await (const piece of stream) {
      for (let rest = piece as Buffer; rest.length > 0;) {
        if (!file || (isSplit && at % maxFileBytes === 0)) {
          await file?.close()
          file = await open(isSplit ? `${to}.${at / maxFileBytes}` : to, 'wx')
        }
        const ends = [CHUNK_BYTES, isSplit ? maxFileBytes : Infinity].map(
          (size) => size - (at % size),
        )
        const part = rest.subarray(0, Math.min(...ends))
        await file.writeFile(part)
        whole.update(part)
        chunk.update(part)
        at += part.length
        rest = rest.subarray(part.length)
        if (at % CHUNK_BYTES !== 0) continue
        chunks.push(chunk.digest('hex'))
        chunk = createHash('sha256')
      }
      onBytes(piece.length)
    }
    if (at % CHUNK_BYTES !== 0) chunks.push(chunk.digest('hex'))
    // An empty file has no pieces, but it must exist.
    file ??= await open(to, 'wx')
  } finally {
    await file?.close()
    await source?.close()
  }
  if (at !== item.bytes)
    throw refuse(`${join(root.path, item.path)} changed while it was copied.`, 'Run this again.')
  return {
    bytes: at,
    sha256: whole.digest('hex'),
    ...(chunks.length > 1 && { chunks }),
    ...(isSplit && { partBytes: maxFileBytes }),
  }
}

/** Returns the kind of a model and its files. All paths are relative and use forward slashes. */
function findSource(path: string): { root: ModelRoot; files: HubFile[] } & Kind {
  if (!existsSync(path))
    throw refuse(
      `There is no ${path}.`,
      'Name an .onnx or .gguf file, or a folder. Name a GGUF file of a hub with --file.',
    )
  if (!statSync(path).isDirectory()) {
    const kind = /\.gguf$/i.test(path) ? 'gguf' : 'graph'
    return { root: openRoot(dirname(path)), files: [], kind, path: basename(path) }
  }
  const root = openRoot(path)
  const files = listFolder(root, '', [root.real])
  files.sort((one, other) => (one.path < other.path ? -1 : 1))
  return { root, files, ...kindOf(path, files) }
}

/** Returns the files of a folder. Links back to `above`, the real parent folders, are skipped. */
const listFolder = (root: ModelRoot, folder: string, above: readonly string[]): HubFile[] =>
  readdirSync(join(root.path, folder))
    .filter((name) => !name.startsWith('.'))
    .flatMap((name): HubFile[] => {
      const path = folder + name
      const real = findInside(root, path)
      if (real === undefined || above.includes(real)) return []
      const stat = statSync(real)
      if (stat.isDirectory()) return listFolder(root, `${path}/`, [...above, real])
      return stat.isFile() ? [{ path, bytes: stat.size, sha256: null, blobId: '' }] : []
    })

/**
 * Returns the path of an item in the app, with forward slashes. Other characters than letters,
 * digits and `_.-` are replaced, since servers treat them differently in URLs.
 */
const toServedPath = ({ name }: Item): string =>
  name.replaceAll(/[^\w./-]/gu, (sign) => `_${sign.codePointAt(0)?.toString(16)}`)
