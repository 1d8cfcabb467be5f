/**
 * Imports files of the user as a tag. Files of a listed tag are matched by their digests. For an
 * unlisted tag, an entry is drafted from the files. They are stored like downloads.
 */
import { isModelFile } from '../../catalog/hub/variants.ts'
import {
  completeEntry,
  resolveRepository,
  type ResolvedHub,
} from '../../catalog/hub/resolve-hub.ts'
import type { Entry, Implementation, Resource } from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import { acquireUseLocks, runExclusive } from '../../store/exclusive.ts'
import { isImported, putImportedEntry } from '../../store/imported-entries.ts'
import { withEviction } from '../../store/eviction.ts'
import {
  digestFiles,
  type FileMatch,
  importFiles,
  type ImportOptions,
  readPiece,
} from '../../store/import-file.ts'
import type { Database } from '../../store/database.ts'
import type {
  ChosenFile,
  Control,
  Imported,
  ImportProgress,
  ImportWishes,
  Tag,
} from '../../types/index.ts'
import { areStored } from '../../store/resources.ts'
import { createCatalogIndex, type Entries, isUnlistedHubEntry, resourcesOf } from './entries.ts'
import {
  checkEntry,
  draftUnlisted,
  findModelFolder,
  listFolder,
  toEntry,
} from '../../draft/unlisted.ts'
import type { Models } from '../models/models.ts'
import type { ImplementationSelector } from '../choice/selector.ts'

interface ImporterOptions {
  database: Database
  entries: Entries
  selector: ImplementationSelector
  models: Pick<Models, 'unload'>
  /** Called when files are about to be written. */
  onDownload: () => void
}

/** Creates the function behind `server.storage.import`. */
export function createImporter(options: ImporterOptions): Control['importTag'] {
  const { database, entries, onDownload } = options
  // Imports of one tag run one after the other, in all tabs, because each replaces the tag.
  return (tag, chosen, wishes, caller) =>
    runExclusive(`${database.name}:import:${tag}`, caller, async (signal) => {
      const onProgress = (progress: ImportProgress) => caller.onEvent?.(progress)
      const entry = (await entries.all()).find((one) => one.tag === tag)
      const files = 'kind' in chosen ? await listFolder(chosen, signal) : [...chosen]
      const catalogIndex = () => createCatalogIndex(entries)
      const importOptions = { tag, signal, catalogIndex, onProgress, onWrite: onDownload }
      return entry && !(await isNewModel(entry, files, wishes, importOptions))
        ? importListed(options, entry, files, importOptions)
        : importUnlisted(options, files, wishes, importOptions)
    })
}

/** Imports files of a tag that the catalog lists or that was imported before. */
async function importListed(
  { database, entries, selector }: ImporterOptions,
  entry: Entry,
  files: readonly ChosenFile[],
  importOptions: ImportOptions,
): Promise<Imported> {
  const unlisted = isUnlistedHubEntry(entry) ? entry : undefined
  const folder = unlisted && (await readFolder(unlisted, files, importOptions))
  const listed = folder?.entry ?? entry
  const resources = resourcesOf([listed])
  const matches = folder?.matches ?? (await match(files, resources, importOptions))
  if (matches.length === 0) throw noMatch(entry.tag, files, resources)
  const choice = await selector.select(listed).catch(() => undefined)
  const imported = choice ? await selectNeeded(database, matches, choice.implementation) : matches
  const bytes = await importFiles(database, imported, importOptions)
  if (folder) await entries.storeResolved(unlisted, folder.resolved, importOptions.signal)
  const complete = choice !== undefined && (await areStored(database, choice.implementation))
  return { ...summarize(files, imported, importOptions), bytes, complete, notes: [] }
}

/** Resolves with the files of the implementation if they complete it, else with all matches. */
async function selectNeeded(
  database: Database,
  matches: readonly FileMatch[],
  { resources }: Implementation,
): Promise<readonly FileMatch[]> {
  const isIn = (all: readonly Resource[], hash: string) => all.some(({ sha256 }) => sha256 === hash)
  const needed = matches.filter(({ resource }) => isIn(resources, resource.sha256))
  const given = needed.map(({ resource }) => resource as Resource)
  const missing = resources.filter(({ sha256 }) => !isIn(given, sha256))
  return (await areStored(database, { resources: missing })) ? needed : matches
}

/** Imports files as a tag that no catalog lists. */
async function importUnlisted(
  { database, selector, models }: ImporterOptions,
  files: readonly ChosenFile[],
  wishes: ImportWishes,
  importOptions: ImportOptions,
): Promise<Imported> {
  const { tag, signal } = importOptions
  const plan = await draftUnlisted(tag, files, wishes, importOptions)
  // Only the files that this device uses are stored, as in a download.
  const { implementation } = await selector.select(toEntry(tag, plan, new Map()))
  const planned = plan.implementations.find(({ id }) => id === implementation.id)?.items ?? []
  const parts = planned.map(({ path }) => files.find((one) => one.path === path) as ChosenFile)
  const hashes = await hashFiles(parts, importOptions)
  const entry = toEntry(tag, plan, hashes)
  checkEntry(entry)
  const resources = resourcesOf([entry])
  const matches = planned.map(({ name }, at): FileMatch => {
    const resource = resources.find((one) => one.name === name) as Resource
    return { ...(parts[at] as ChosenFile), resource }
  })
  // Until the tag is pinned, only this protects the files from eviction.
  const release = await acquireUseLocks(database, hashes.values(), signal)
  try {
    const bytes = await importFiles(database, matches, importOptions)
    await withEviction(database, importOptions, () =>
      putImportedEntry(database, { tag, entry }, new Set(hashes.values())),
    )
    models.unload(tag)
    const summary = summarize(files, matches, importOptions)
    return { ...summary, bytes, complete: true, notes: plan.notes }
  } finally {
    release()
  }
}

/** Resolves with the sha256 of the files by their paths. */
async function hashFiles(
  files: readonly ChosenFile[],
  importOptions: ImportOptions,
): Promise<Map<string, string>> {
  const contents = files.map(({ file }) => file)
  const hashes = await digestFiles(contents, importOptions)
  return new Map(files.map(({ path }, index) => [path, hashes[index] ?? '']))
}

/**
 * Resolves with `true` if the files are a new model for an imported tag. They are if no file
 * matches, a file has the name of a missing one, or a graph is new. A name or tensors in the
 * options make them one, too.
 */
async function isNewModel(
  entry: Entry,
  files: readonly ChosenFile[],
  { name, tensors }: ImportWishes,
  importOptions: ImportOptions,
): Promise<boolean> {
  const resources = resourcesOf([entry])
  if (!resources.some(isImported)) return false
  if (name !== undefined || tensors !== undefined) return true
  const matches = await match(files, resources, importOptions)
  const paths = new Set(matches.map(({ path }) => path))
  const hashes = new Set(matches.map(({ resource }) => resource.sha256))
  const changed = resources.filter(({ sha256 }) => !hashes.has(sha256)).map((one) => `/${one.name}`)
  const isNewModelFile = ({ path }: ChosenFile): boolean =>
    path.endsWith('.onnx') || changed.some((called) => `/${path}`.endsWith(called))
  return matches.length === 0 || files.some((one) => !paths.has(one.path) && isNewModelFile(one))
}

function summarize(
  files: readonly ChosenFile[],
  imported: readonly FileMatch[],
  { tag }: ImportOptions,
): Pick<Imported, 'tag' | 'files' | 'ignored'> {
  const paths = new Set(imported.map(({ path }) => path))
  const ignored = files.map(({ path }) => path).filter((path) => !paths.has(path))
  return { tag, files: [...paths], ignored }
}

/** Resolves an entry of a hub from the files of a folder, without the network. */
async function readFolder(
  entry: Parameters<Entries['storeResolved']>[0],
  files: readonly ChosenFile[],
  importOptions: ImportOptions,
): Promise<{ entry: Entry; resolved: ResolvedHub; matches: FileMatch[] }> {
  const root = findModelFolder(files)
  const inside = new Map(
    files.flatMap((chosen) =>
      chosen.path.startsWith(root) ? [[chosen.path.slice(root.length), chosen] as const] : [],
    ),
  )
  const get = (path: string) => inside.get(path) as ChosenFile
  const parts = [...inside.keys()].filter(isModelFile)
  const hashes = await hashFiles(
    parts.map((path) => ({ path, file: get(path).file })),
    importOptions,
  )
  const { hub } = entry
  const resolved = await resolveRepository(hub, {
    revision: hub.revision,
    created: undefined,
    files: parts.map((path) => ({ path, bytes: get(path).file.size, sha256: null, blobId: '' })),
    sha256: async ({ path }) => hashes.get(path) ?? '',
    read: ({ path }) => readPiece(get(path).file),
  })
  const complete = completeEntry(entry, resolved)
  const matches = resourcesOf([complete]).map((resource) => ({ ...get(resource.name), resource }))
  return { entry: complete, resolved, matches }
}

/** Matches files with resources by sha256. Only files with the size of a resource are read. */
async function match(
  files: readonly ChosenFile[],
  resources: readonly Resource[],
  importOptions: ImportOptions,
): Promise<FileMatch[]> {
  const lengths = new Set(resources.map(({ bytes }) => bytes))
  const candidates = files.filter(({ file }) => lengths.has(file.size))
  const contents = candidates.map(({ file }) => file)
  // Several chosen files may have the same path.
  const hashes = await digestFiles(contents, importOptions)
  return candidates.flatMap(({ path, file }, index) => {
    const resource = resources.find(({ sha256 }) => sha256 === hashes[index])
    return resource ? [{ path, file, resource }] : []
  })
}

function noMatch(
  tag: Tag,
  files: readonly ChosenFile[],
  resources: readonly Resource[],
): InoriginError {
  const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)
  const mismatches = files.flatMap(({ path, file }) => {
    const resource = resources.find(({ name }) => nameOf(name) === nameOf(path))
    if (!resource) return []
    const got = file.size === resource.bytes ? 'a different sha256' : `${file.size} bytes`
    return [
      `${path} has ${got} and should have ${resource.bytes} bytes with sha256 ${resource.sha256}`,
    ]
  })
  const what = `None of the ${files.length} files belongs to ${tag} as the catalog lists it`
  const names = resources.map(({ name, bytes }) => `${name} (${bytes} bytes)`)
  const expected =
    names.length > 0
      ? `expected ${names.slice(0, 8).join(', ')}`
      : 'its files have not been looked up yet; load it, or run `inorigin catalog refresh`'
  const why = mismatches.length > 0 ? mismatches.join('; ') : expected
  return new InoriginError('invalid_request', `${what}: ${why}. Choose other files.`, {
    code: 'import_mismatch',
    param: 'files',
  })
}
