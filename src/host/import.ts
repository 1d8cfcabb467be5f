/** Files of the user's as a tag: told by what they hold, stored as a download would be. */
import { resolveRepository } from '../catalog/hub/resolve.ts'
import type { Entry, Resource } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import { hashFiles, importFiles, type ImportOptions, type Match } from '../store/import.ts'
import type { Database } from '../store/open.ts'
import type { ChosenFile, Control, Tag } from '../types/index.ts'
import { filesIn, rootOf } from './chosen.ts'
import type { Choices } from './choices.ts'
import { isShort, type Entries } from './entries.ts'
import { areHere } from './race.ts'
import { resourcesOf } from './resources.ts'

export interface ImporterOptions {
  database: Database
  entries: Entries
  choices: Choices
  /** Something is written. */
  onDownload: () => void
}

/** Makes what `server.storage.import` asks. */
export function createImporter(options: ImporterOptions): Control['take'] {
  const { database, entries, choices, onDownload } = options

  async function isComplete(entry: Entry): Promise<boolean> {
    const choice = await choices.pick(entry).catch(() => undefined)
    return choice !== undefined && areHere(database, choice.implementation)
  }

  return async (tag, chosen, signal, onProgress) => {
    const entry = await entries.find(tag, 'tag')
    const files = isFolder(chosen) ? await filesIn(chosen) : [...chosen]
    const how: ImportOptions = { tag, signal, onProgress, onWrite: onDownload }
    if (isShort(entry)) await adopt(entries, entry, files, how)
    const listed = await entries.find(tag, 'tag')
    const resources = resourcesOf([listed])
    const matches = await match(files, resources, how)
    if (matches.length === 0) throw nothingFits(tag, files, resources)
    const bytes = await importFiles(database, matches, how)
    const paths = new Set(matches.map(({ path }) => path))
    return {
      tag, bytes,
      files: [...paths],
      ignored: files.map(({ path }) => path).filter((path) => !paths.has(path)),
      complete: await isComplete(listed),
    }
  }
}

/** What a hub would say of an entry, said by the folder itself: no network is needed. */
async function adopt(
  entries: Entries,
  entry: Parameters<Entries['adopt']>[0],
  files: readonly ChosenFile[],
  how: ImportOptions,
): Promise<void> {
  const root = rootOf(files)
  const inside = new Map(
    files.flatMap(({ path, file }) =>
      path.startsWith(root) ? [[path.slice(root.length), file] as const] : [],
    ),
  )
  const get = ({ path }: { path: string }) => inside.get(path) as File
  const resolved = await resolveRepository(entry.hub, {
    revision: entry.hub.revision,
    created: undefined,
    files: Array.from(inside, ([path, file]) => ({
      path, bytes: file.size, sha256: null, blobId: '',
    })),
    sha256: async (file) => (await hashFiles([get(file)], how))[0] ?? '',
    read: async (file) => new Uint8Array(await get(file).arrayBuffer()),
  })
  await entries.adopt(entry, resolved)
}

/** Files of the length of a resource are read, those with its hash are it. */
async function match(
  files: readonly ChosenFile[],
  resources: readonly Resource[],
  how: ImportOptions,
): Promise<Match[]> {
  const lengths = new Set(resources.map(({ bytes }) => bytes))
  const candidates = files.filter(({ file }) => lengths.has(file.size))
  const hashes = await hashFiles(candidates.map(({ file }) => file), how)
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

function nothingFits(
  tag: Tag,
  files: readonly ChosenFile[],
  resources: readonly Resource[],
): InoriginError {
  const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)
  const alike = files.flatMap(({ path, file }) => {
    const resource = resources.find(({ name }) => nameOf(name) === nameOf(path))
    if (!resource) return []
    const got = file.size === resource.bytes ? 'another sha256' : `${file.size} bytes`
    return [`${path} has ${got} and should have ${resource.bytes} bytes with ${resource.sha256}`]
  })
  const what = `None of the ${files.length} files is one of ${tag} as the catalog describes it`
  const names = resources.map(({ name, bytes }) => `${name} (${bytes} bytes)`)
  const why = alike.length > 0 ? alike.join('; ') : `expected are ${names.slice(0, 8).join(', ')}`
  return new InoriginError('invalid_request', `${what}: ${why}. Choose other files.`, {
    code: 'import_mismatch',
    param: 'files',
  })
}
