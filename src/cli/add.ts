/** `inorigin add`: adds a model of the user, with its files, to the app's catalog. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { getOwner } from '../catalog/find-entry.ts'
import { sumBytes } from '../catalog/memory-bytes.ts'
import type { Dtype, Entry, Implementation, Resource } from '../catalog/schema.ts'
import { tagSchema } from '../catalog/value-schemas.ts'
import { InoriginError } from '../error.ts'
import type { Device, Tag } from '../types/index.ts'
import {
  serializeCatalog,
  assertCatalog,
  readAppCatalog,
  SCHEMA_FILE,
  withEntry,
} from './add/app-catalog.ts'
import { copyItem, type CopiedFile } from './add/copy-file.ts'
import type { ModelRoot } from './add/model-root.ts'
import { findSource, toServedPath } from './add/source.ts'
import { planKind } from '../draft/kind.ts'
import { openFolder } from './onnx/disk-folder.ts'
import type { Item } from '../draft/items.ts'
import type { Plan, Planned } from '../draft/plan.ts'
import { type BindingWishes, createWishes, toImageOption } from '../draft/wishes.ts'
import { refuse } from '../draft/refuse.ts'
import { testPlan } from './onnx/test-plan.ts'
import type { ExampleShapes } from './onnx/try-example.ts'
import { assertNoLinks, toTemporaryPath, writeBelow } from './write-file.ts'

export interface AddOptions {
  /** Path of an .onnx file or a folder. */
  source: string
  tag: Tag
  /** Folder that the app's web server serves. */
  publicDir: string
  /** Display name. Default: the file name. */
  name?: string | undefined
  devices: readonly Device[]
  /** Precisions of a folder to add; `null` for all. */
  dtypes: readonly Dtype[] | null
  /** Names of inputs to keep as tensors although they look like images. */
  tensors: readonly string[]
  /** Facts about inputs and outputs that only the author knows. */
  wishes?: BindingWishes
  /** Maximum length of a file in bytes. Larger files are split. */
  maxFileBytes: number
  /** `true` to replace an entry of that tag and its files. */
  force: boolean
  /** Folder `dist` of the built package. */
  dist: string
  /** Returns the folder of onnxruntime-web that contains its builds. */
  runtime: () => string
  signal: AbortSignal
  /** Called for every step that can take long, with `done` of `total` bytes while copying. */
  onStep: (what: string, done?: number, total?: number) => void
}

export interface AddResult {
  entry: Entry
  /** Path of the app's catalog. */
  catalog: string
  folder: string
  files: number
  bytes: number
  /** Names of the files that were split. */
  splitFiles: string[]
  notes: string[]
  /** Shapes of tensors with which the model ran. Empty if it was not run. */
  shapes: ExampleShapes
  /** `true` if `inorigin init` has filled the folder. */
  isReady: boolean
}

/** Name of the folder that `inorigin init` fills too. */
const INORIGIN_FOLDER = 'inorigin'

/** Name of the app's own catalog in that folder. */
const CATALOG_FILE = 'catalog.json'

/**
 * Drafts an entry, copies its files and writes both into the app's catalog. Throws
 * `invalid_request` with instructions, and `aborted`. In both cases nothing has changed.
 */
export async function add(options: AddOptions): Promise<AddResult> {
  const { tag, publicDir, signal, onStep } = options
  assertTag(tag)
  const home = join(publicDir, INORIGIN_FOLDER)
  const catalog = join(home, CATALOG_FILE)
  const folder = join(home, tag)
  for (const name of [CATALOG_FILE, SCHEMA_FILE, tag])
    assertNoLinks(publicDir, `${INORIGIN_FOLDER}/${name}`)
  const appCatalog = readAppCatalog(catalog)
  if (!options.force)
    assertNotPresent(
      appCatalog.entries.some((entry) => entry.tag === tag),
      folder,
      options,
    )

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
    const next = withEntry(appCatalog, entry)
    assertCatalog(next, catalog)
    signal.throwIfAborted()
    assertNoLinks(publicDir, `${INORIGIN_FOLDER}/${tag}`)
    await rm(folder, { recursive: true, force: true })
    await rename(staging, folder)
    writeCatalog(next, options)
    return {
      entry,
      catalog,
      folder,
      files: await countFiles(folder),
      bytes: sumBytes(items),
      splitFiles: items.map(({ name }) => name).filter((name) => copied.get(name)?.partBytes),
      notes: plan.notes,
      shapes,
      isReady: existsSync(join(home, 'index.js')),
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

/** Writes the catalog, with its schema for editors. */
function writeCatalog(
  catalog: Parameters<typeof serializeCatalog>[0],
  { publicDir, dist }: AddOptions,
): void {
  writeBelow(publicDir, `${INORIGIN_FOLDER}/${CATALOG_FILE}`, { text: serializeCatalog(catalog) })
  const schema = join(dist, SCHEMA_FILE)
  if (existsSync(schema))
    writeBelow(publicDir, `${INORIGIN_FOLDER}/${SCHEMA_FILE}`, { from: schema })
}

async function countFiles(folder: string): Promise<number> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true })
  return all.filter((one) => one.isFile()).length
}

function assertTag(tag: string): void {
  const { issues, success } = v.safeParse(tagSchema, tag)
  if (!success) throw refuse(`--tag ${tag}: ${issues[0].message}.`, 'Use one such as @me/name.')
  if (getOwner(tag) !== 'inorigin') return
  throw refuse('Tags of @inorigin are reserved.', 'Use an owner name of your own.')
}

function assertNotPresent(isThere: boolean, folder: string, { tag }: AddOptions): void {
  const todo = 'Choose another tag, or replace it with --force.'
  if (isThere) throw refuse(`${tag} is already in the catalog.`, todo)
  if (existsSync(folder)) throw refuse(`${folder} already exists.`, todo)
}

async function copyAll(
  root: ModelRoot,
  items: readonly Item[],
  folder: string,
  { maxFileBytes, signal, onStep }: AddOptions,
): Promise<ReadonlyMap<string, CopiedFile>> {
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

function toEntry(
  plan: Plan,
  copied: ReadonlyMap<string, CopiedFile>,
  { tag, name }: AddOptions,
): Entry {
  const { type, ...rest } = plan.entry
  const implementations = plan.implementations.map(
    ({ items, ...planned }: Planned): Implementation => ({
      ...planned,
      resources: items.map((item): Resource => {
        const { bytes, sha256, ...splitFields } = copied.get(item.name) as CopiedFile
        return {
          type: item.type,
          url: `${tag}/${toServedPath(item)}`,
          name: item.name,
          bytes,
          sha256,
          ...splitFields,
        }
      }),
    }),
  )
  const created = new Date().toISOString().replace(/\.\d+/, '')
  return { type, tag, created, ...rest, name: name ?? rest.name, implementations } as Entry
}
