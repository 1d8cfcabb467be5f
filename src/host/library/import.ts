/**
 * Imports files of the user as a tag. Files of a listed tag are matched by their digests. For an
 * unlisted tag, an entry is drafted from the files. They are stored like downloads.
 */
import { type HubFile, isModelFile } from '../../catalog/hub/variants.ts'
import { completeEntry } from '../../catalog/hub/resolve-hub.ts'
import type {
  Entry,
  HubSource,
  Implementation,
  ModelEntry,
  Resource,
} from '../../catalog/schema.ts'
import { createWindow } from '../../engine/onnx/protobuf.ts'
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
import { createCatalogIndex, type Entries, isUnlistedFolder, resourcesOf } from './entries.ts'
import {
  checkEntry,
  draftUnlisted,
  findModelFolder,
  listFolder,
  toEntry,
} from '../../draft/unlisted.ts'
import { GENAI_CONFIG } from '../../draft/genai.ts'
import type { Models } from '../models/models.ts'
import type { ImplementationSelector } from '../choice/selector.ts'

interface ImporterOptions {
  database: Database
  entries: Entries
  selector: Pick<ImplementationSelector, 'select'>
  models: Pick<Models, 'unload'>
  /** Called when files are about to be written. */
  onDownload: () => void
}

/** Creates the function behind `server.storage.import`. */
export function createImporter(options: ImporterOptions): Control['importTag'] {
  // Imports of one tag run one after the other, in all tabs, because each replaces the tag.
  return (tag, chosen, wishes, caller) =>
    runExclusive(`${options.database.name}:import:${tag}`, caller, async (signal) => {
      const files = 'kind' in chosen ? await listFolder(chosen, signal) : [...chosen]
      const onProgress = (progress: ImportProgress) => caller.onEvent?.(progress)
      const catalogIndex = () => createCatalogIndex(options.entries)
      const onWrite = options.onDownload
      const importOptions = { tag, signal, catalogIndex, onProgress, onWrite }
      return new Import(options, files, wishes, importOptions).run()
    })
}

/** One import of files. */
class Import {
  #importer: ImporterOptions
  #files: readonly ChosenFile[]
  #wishes: ImportWishes
  #options: ImportOptions

  constructor(
    importer: ImporterOptions,
    files: readonly ChosenFile[],
    wishes: ImportWishes,
    options: ImportOptions,
  ) {
    this.#importer = importer
    this.#files = files
    this.#wishes = wishes
    this.#options = options
  }

  async run(): Promise<Imported> {
    const all = await this.#importer.entries.all()
    const entry = all.find(({ tag }) => tag === this.#options.tag)
    return entry && !(await this.#isNewModel(entry))
      ? this.#importListed(entry)
      : this.#importUnlisted()
  }

  /** Imports files of a tag that the catalog lists or that was imported before. */
  async #importListed(entry: Entry): Promise<Imported> {
    const { database, entries, selector } = this.#importer
    const unlisted = isUnlistedFolder(entry) ? entry : undefined
    const folder = unlisted && (await this.#readFolder(unlisted))
    const listed = folder?.entry ?? entry
    const resources = resourcesOf([listed])
    const matches = folder?.matches ?? (await this.#match(resources))
    if (matches.length === 0) throw noMatch(entry.tag, this.#files, resources)
    const choice = await selector.select(listed).catch(() => undefined)
    const imported = choice ? await this.#selectNeeded(matches, choice.implementation) : matches
    const bytes = await importFiles(database, imported, this.#options)
    if (folder) await entries.storeResolved(unlisted, folder.resolved, this.#options.signal)
    const complete = choice !== undefined && (await areStored(database, choice.implementation))
    return { ...this.#summarize(imported), bytes, complete, notes: [] }
  }

  /** Imports files as a tag that no catalog lists. */
  async #importUnlisted(): Promise<Imported> {
    const { database, selector, models } = this.#importer
    const { tag, signal } = this.#options
    const plan = await draftUnlisted(tag, this.#files, this.#wishes, this.#options)
    // Only the files that this device uses are stored, as in a download.
    const { implementation } = await selector.select(toEntry(tag, plan, new Map()))
    const planned = plan.implementations.find(({ id }) => id === implementation.id)?.items ?? []
    const parts = planned.map(({ path, text }) =>
      text === undefined
        ? (this.#files.find((one) => one.path === path) as ChosenFile)
        : { path, file: new File([text], path) },
    )
    const hashes = await this.#hashFiles(parts)
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
      const bytes = await importFiles(database, matches, this.#options)
      await withEviction(database, this.#options, () =>
        putImportedEntry(database, { tag, entry }, new Set(hashes.values())),
      )
      models.unload(tag)
      const given = matches.filter((_, at) => planned[at]?.text === undefined)
      return { ...this.#summarize(given), bytes, complete: true, notes: plan.notes }
    } finally {
      release()
    }
  }

  /**
   * Resolves with `true` if the files are a new model for an imported tag. They are if no file
   * matches, a file has the name of a missing one, or a graph is new. A name or tensors in the
   * options make them one, too.
   */
  async #isNewModel(entry: Entry): Promise<boolean> {
    const { name, tensors } = this.#wishes
    const resources = resourcesOf([entry])
    if (!resources.some(isImported)) return false
    if (name !== undefined || tensors !== undefined) return true
    const matches = await this.#match(resources)
    const paths = new Set(matches.map(({ path }) => path))
    const hashes = new Set(matches.map(({ resource }) => resource.sha256))
    const missing = resources.filter(({ sha256 }) => !hashes.has(sha256))
    const isNewModelFile = ({ path }: ChosenFile): boolean =>
      path.endsWith('.onnx') ||
      missing.some((one) => `/${path}`.endsWith(`/${one.name}`)) ||
      // Files of configuration are made from it.
      (missing.length > 0 && `/${path}`.endsWith(`/${GENAI_CONFIG}`))
    return (
      matches.length === 0 || this.#files.some((one) => !paths.has(one.path) && isNewModelFile(one))
    )
  }

  /** Resolves with the files of the implementation if they complete it, else with all matches. */
  async #selectNeeded(
    matches: readonly FileMatch[],
    { resources }: Implementation,
  ): Promise<readonly FileMatch[]> {
    const wanted = new Set(resources.map(({ sha256 }) => sha256))
    const needed = matches.filter(({ resource }) => wanted.has(resource.sha256))
    const given = new Set(needed.map(({ resource }) => resource.sha256))
    const missing = resources.filter(({ sha256 }) => !given.has(sha256))
    const isWhole = await areStored(this.#importer.database, { resources: missing })
    return isWhole ? needed : matches
  }

  /** Resolves an entry of a hub from the files of a folder, without the network. */
  async #readFolder(entry: ModelEntry & { hub: HubSource }) {
    const root = findModelFolder(this.#files)
    const inside = new Map(
      this.#files.flatMap((chosen) =>
        chosen.path.startsWith(root) ? [[chosen.path.slice(root.length), chosen] as const] : [],
      ),
    )
    const get = (path: string) => inside.get(path) as ChosenFile
    const parts = [...inside.keys()].filter(isModelFile)
    const hashes = await this.#hashFiles(parts.map((path) => ({ path, file: get(path).file })))
    const { hub } = entry
    const repository = {
      revision: hub.revision,
      created: undefined,
      files: parts.map((path) => ({ path, bytes: get(path).file.size, sha256: null, blobId: '' })),
      sha256: async ({ path }: HubFile) => hashes.get(path) ?? '',
      read: ({ path }: HubFile) => readPiece(get(path).file),
    }
    const { resolveFiles } = await import('../../draft/hub.ts')
    const resolved = await resolveFiles(hub, repository, ({ path }) => {
      const { file } = get(path)
      return { ...createWindow(file), size: file.size, close: async () => undefined }
    })
    const complete = completeEntry(entry, resolved)
    const matches = resourcesOf([complete]).map((resource) => ({ ...get(resource.name), resource }))
    return { entry: complete, resolved, matches }
  }

  /** Matches files with resources by sha256. Only files with the size of a resource are read. */
  async #match(resources: readonly Resource[]): Promise<FileMatch[]> {
    const lengths = new Set(resources.map(({ bytes }) => bytes))
    const candidates = this.#files.filter(({ file }) => lengths.has(file.size))
    // Several chosen files may have the same path.
    const hashes = await this.#digest(candidates)
    return candidates.flatMap(({ path, file }, index) => {
      const resource = resources.find(({ sha256 }) => sha256 === hashes[index])
      return resource ? [{ path, file, resource }] : []
    })
  }

  /** Resolves with the sha256 of the files by their paths. */
  async #hashFiles(files: readonly ChosenFile[]): Promise<Map<string, string>> {
    const hashes = await this.#digest(files)
    return new Map(files.map(({ path }, index) => [path, hashes[index] ?? '']))
  }

  #digest(files: readonly ChosenFile[]) {
    return digestFiles(
      files.map(({ file }) => file),
      this.#options,
    )
  }

  #summarize(imported: readonly FileMatch[]) {
    const paths = new Set(imported.map(({ path }) => path))
    const ignored = this.#files.map(({ path }) => path).filter((path) => !paths.has(path))
    return { tag: this.#options.tag, files: [...paths], ignored }
  }
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
