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
import { runExclusive } from '../../store/exclusive.ts'
import { isImported, putImportedEntry } from '../../store/imported-entries.ts'
import { withEviction } from '../../store/eviction.ts'
import { digestFiles, importFiles, type ImportOptions, type FileMatch } from '../../store/import.ts'
import { readPiece } from '../../store/import-file.ts'
import type { Database } from '../../store/database.ts'
import { acquireUseLocks } from '../../store/use-locks.ts'
import type { ChosenFile, Control, Imported, ImportWishes, Tag } from '../../types/index.ts'
import { areStored } from '../../store/resources.ts'
import { createCatalogIndex, resourcesOf } from './catalog-index.ts'
import { checkEntry, draftUnlisted, toEntry } from '../../draft/unlisted.ts'
import { isUnlistedHubEntry, type Entries } from './entries.ts'
import type { Models } from '../models/models.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import { findModelFolder, listFolder } from '../../draft/user-files.ts'

export interface ImporterOptions {
  database: Database
  entries: Entries
  selector: ImplementationSelector
  models: Pick<Models, 'unload'>
  /** Called when files are about to be written. */
  onDownload: () => void
}

/** Creates the function behind `server.storage.import`. */
export function createImporter(options: ImporterOptions): Control['take'] {
  const { database, entries, selector, models, onDownload } = options

  /** Resolves with the files of the chosen implementation if they complete it, else with all. */
  async function selectNeeded(matches: readonly FileMatch[], chosen: Implementation | undefined) {
    const planned = new Set(chosen?.resources.map(({ sha256 }) => sha256))
    const used = matches.filter(({ resource }) => planned.has(resource.sha256))
    const matched = new Set(used.map(({ resource }) => resource.sha256))
    const missing = chosen?.resources.filter(({ sha256 }) => !matched.has(sha256)) ?? []
    const isComplete = chosen !== undefined && (await areStored(database, { resources: missing }))
    return isComplete ? used : matches
  }

  /** Imports files of a tag that the catalog lists or that was imported before. */
  async function importListed(
    entry: Entry,
    files: readonly ChosenFile[],
    importOptions: ImportOptions,
  ): Promise<Imported> {
    const { tag } = entry
    const folder = isUnlistedHubEntry(entry)
      ? await readFolder(entry, files, importOptions)
      : undefined
    const listed = folder?.entry ?? entry
    const resources = resourcesOf([listed])
    const matches = folder?.matches ?? (await match(files, resources, importOptions))
    if (matches.length === 0) throw noMatch(tag, files, resources)
    const choice = await selector.select(listed).catch(() => undefined)
    const imported = await selectNeeded(matches, choice?.implementation)
    const bytes = await importFiles(database, imported, importOptions)
    if (folder && isUnlistedHubEntry(entry))
      await entries.storeResolved(entry, folder.resolved, importOptions.signal)
    const complete = choice !== undefined && (await areStored(database, choice.implementation))
    return { ...summarize(tag, files, imported), bytes, complete, notes: [] }
  }

  /** Imports files as a tag that no catalog lists. */
  async function importUnlisted(
    tag: Tag,
    files: readonly ChosenFile[],
    wishes: ImportWishes,
    importOptions: ImportOptions,
  ): Promise<Imported> {
    const plan = await draftUnlisted(tag, files, wishes, importOptions)
    // Only the files that this device uses are stored, as in a download.
    const { implementation } = await selector.select(toEntry(tag, plan, new Map()))
    const planned = plan.implementations.find(({ id }) => id === implementation.id)?.items ?? []
    const parts = planned.map(({ path }) => files.find((one) => one.path === path) as ChosenFile)
    const hashed = await digestFiles(
      parts.map(({ file }) => file),
      importOptions,
    )
    const entry = toEntry(
      tag,
      plan,
      new Map(planned.map(({ path }, at) => [path, hashed[at] ?? ''])),
    )
    checkEntry(entry)
    const resources = new Map(resourcesOf([entry]).map((resource) => [resource.name, resource]))
    const matches = planned.map(({ name }, at): FileMatch => {
      return { ...(parts[at] as ChosenFile), resource: resources.get(name) as Resource }
    })
    // Until the tag is pinned, only this protects the files from eviction.
    const release = await acquireUseLocks(database, hashed, importOptions.signal)
    try {
      const bytes = await importFiles(database, matches, importOptions)
      await withEviction(database, importOptions, () =>
        putImportedEntry(database, { tag, entry }, new Set(hashed)),
      )
      models.unload(tag)
      return { ...summarize(tag, files, matches), bytes, complete: true, notes: plan.notes }
    } finally {
      release()
    }
  }

  const importTag: Control['take'] = async (tag, chosen, wishes, signal, onProgress) => {
    const entry = (await entries.all()).find((one) => one.tag === tag)
    const files = isFolder(chosen) ? await listFolder(chosen, signal) : [...chosen]
    const known = () => createCatalogIndex(entries)
    const importOptions: ImportOptions = {
      tag,
      signal,
      catalogIndex: known,
      onProgress,
      onWrite: onDownload,
    }
    if (entry && !(await isNewModel(entry, files, wishes, importOptions)))
      return importListed(entry, files, importOptions)
    return importUnlisted(tag, files, wishes, importOptions)
  }

  // Imports of one tag run one after the other, in all tabs, because each replaces the tag.
  return (tag, chosen, wishes, signal, onProgress) =>
    runExclusive(`${database.name}:import:${tag}`, { signal }, (lockSignal) =>
      importTag(tag, chosen, wishes, lockSignal, onProgress),
    )
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
  tag: Tag,
  files: readonly ChosenFile[],
  imported: readonly FileMatch[],
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
  const hashed = await digestFiles(
    parts.map((path) => get(path).file),
    importOptions,
  )
  const hashes = new Map(parts.map((path, index) => [path, hashed[index] ?? '']))
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
  const hashes = await digestFiles(
    candidates.map(({ file }) => file),
    importOptions,
  )
  return candidates.flatMap(({ path, file }, index) => {
    const resource = resources.find(({ sha256 }) => sha256 === hashes[index])
    return resource ? [{ path, file, resource }] : []
  })
}

function isFolder(
  chosen: readonly ChosenFile[] | FileSystemDirectoryHandle,
): chosen is FileSystemDirectoryHandle {
  return !Array.isArray(chosen)
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
