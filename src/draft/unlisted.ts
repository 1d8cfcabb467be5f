/** Drafts a catalog entry for an unlisted tag from files that a user chose in a page. */
import * as v from 'valibot'
import { getOwner } from '../catalog/find-entry.ts'
import { CONFIG_FILE } from '../catalog/mlc/model-files.ts'
import { type Entry, entrySchema, type Implementation, type Resource } from '../catalog/schema.ts'
import { tagSchema } from '../catalog/value-schemas.ts'
import { createWindow } from '../engine/onnx/protobuf.ts'
import { InoriginError } from '../error.ts'
import {
  fileChangedError,
  type ImportFileOptions,
  type ImportOptions,
  withCheckProgress,
} from '../store/import-file.ts'
import { toImportUrl } from '../store/imported-entries.ts'
import type { ChosenFile, ImportWishes, Tag } from '../types/index.ts'
import type { Folder, OpenFile } from './folder.ts'
import { kindOf, planKind } from './kind.ts'
import { type Plan, type PlanOptions, titleOf } from './plan.ts'

/**
 * Resolves with the plan of an entry for the files. They are one graph with its weights, a folder
 * in the layout of exports for the web, or a folder compiled by MLC. The items have the paths of
 * the files. Progress is reported as the `check` phase of an import. Rejects with `invalid_request`
 * if something is missing or wrong, and with the reason of the signal.
 */
export async function draftUnlisted(
  tag: Tag,
  files: readonly ChosenFile[],
  { name, tensors = [] }: ImportWishes,
  importOptions: Pick<ImportOptions, 'tag' | 'signal' | 'onProgress'>,
): Promise<Plan> {
  checkTag(tag)
  checkWishes({ name, tensors })
  const root = findModelFolder(files)
  const options: PlanOptions = {
    devices: ['webgpu', 'wasm'],
    dtypes: null,
    tensors: new Set(tensors),
    keep: (input) => `tensors: ['${input}']`,
  }
  try {
    const plan = await planIn(root, files, options, importOptions)
    const implementations = plan.implementations.map((one) => ({
      ...one,
      items: one.items.map((item) => ({ ...item, path: root + item.path })),
    }))
    return {
      ...plan,
      entry: { ...plan.entry, name: name ?? nameFor(tag, root, plan) },
      implementations,
    }
  } catch (thrown) {
    if (importOptions.signal.aborted) throw importOptions.signal.reason
    const error = InoriginError.from(thrown)
    if (error.kind !== 'invalid_request' || error.code !== undefined) throw error
    throw importUnfit(tag, error.message, error)
  }
}

/** Throws `invalid_request` if the entry is not valid in a catalog, such as an unnamed input. */
export function checkEntry(entry: Entry): void {
  const { issues, success } = v.safeParse(entrySchema, entry)
  if (success) return
  throw importUnfit(entry.tag, `${v.getDotPath(issues[0])} is not valid (${issues[0].message}).`)
}

function importUnfit(tag: Tag, why: string, cause?: unknown): InoriginError {
  const what = `Cannot import ${tag}, which is in no catalog: ${why}`
  return new InoriginError('invalid_request', what, { code: 'import_unfit', param: 'files', cause })
}

/**
 * Returns the entry of the plan, with the implementations whose files all have a hash in `hashes`.
 * If `hashes` is empty, it includes all implementations, with empty hashes.
 */
export function toEntry(tag: Tag, plan: Plan, hashes: ReadonlyMap<string, string>): Entry {
  const implementations = plan.implementations
    .filter(({ items }) => hashes.size === 0 || items.every(({ path }) => hashes.has(path)))
    .map(({ items, ...planned }): Implementation => ({
      ...planned,
      resources: items.map(({ type, name, path, bytes }): Resource => ({
        type,
        url: toImportUrl(name),
        name,
        bytes,
        sha256: hashes.get(path) ?? '',
      })),
    }))
  const created = new Date().toISOString().replace(/\.\d+/, '')
  return { ...plan.entry, tag, created, implementations } as Entry
}

async function planIn(
  root: string,
  files: readonly ChosenFile[],
  options: PlanOptions,
  importOptions: Pick<ImportOptions, 'tag' | 'signal' | 'onProgress'>,
): Promise<Plan> {
  const inside = new Map(
    files
      .filter(({ path }) => path.startsWith(root))
      .map(({ path, file }) => [path.slice(root.length), file] as const)
      .filter(([path]) => !path.split('/').some((part) => part.startsWith('.'))),
  )
  // Weights are large and are not read, so they do not count for the progress.
  const checkedFiles = Array.from(inside, ([path, file]) =>
    /\.(onnx|json)$/.test(path) ? [file] : [],
  ).flat()
  return withCheckProgress(checkedFiles, importOptions, (onBytes) => {
    const folder: Folder = {
      nameOf: (path) => (path === '' ? titleFor(root) : root + path),
      sizeOf: (path) => inside.get(path)?.size,
      open: async (path) =>
        openBlob(inside.get(path) as File, { signal: importOptions.signal, onBytes }),
    }
    const listed = Array.from(inside, ([path, { size }]) => {
      return { path, bytes: size, sha256: null, blobId: '' }
    }).toSorted((one, other) => (one.path < other.path ? -1 : 1))
    return planKind(folder, kindOf(titleFor(root), listed), listed, options)
  })
}

const titleFor = (root: string): string => root.replace(/\/$/, '') || 'The selection'

/**
 * Returns the name of the entry. The name of the tag is used if the files have no telling name: a
 * folder handle hides its path, and most graphs are called `model`.
 */
function nameFor(tag: Tag, root: string, { entry }: Plan): string {
  const isDescriptive = entry.type === 'model' ? root !== '' : entry.name !== 'Model'
  return isDescriptive ? entry.name : titleOf(tag)
}

function checkTag(tag: Tag): void {
  const { issues, success } = v.safeParse(tagSchema, tag)
  const isReserved = success && getOwner(tag) === 'inorigin'
  if (success && !isReserved) return
  const why = success ? 'tags of @inorigin are reserved' : issues[0].message
  throw new InoriginError('invalid_request', `${tag}: ${why}. Use one such as @me/name.`, {
    code: 'import_tag',
    param: 'tag',
  })
}

function checkWishes({ name, tensors }: ImportWishes): void {
  const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''
  if (name !== undefined && !isText(name))
    throw invalidOption('name', 'a non-empty string. Omit it to use the name of the files')
  if (Array.isArray(tensors) && tensors.every(isText)) return
  throw invalidOption('tensors', 'an array of input names')
}

const invalidOption = (param: string, what: string): InoriginError =>
  new InoriginError('invalid_request', `${param} must be ${what}.`, {
    code: 'invalid_value',
    param,
  })

/**
 * Returns a file that need not be closed. `onBytes` receives the number of bytes by which each read
 * went further. A read rejects with the reason of the signal, or with `invalid_request` if the file
 * has changed.
 */
function openBlob(
  file: File,
  { signal, onBytes }: Pick<ImportFileOptions, 'signal' | 'onBytes'>,
): OpenFile {
  const window = createWindow(file)
  let furthest = 0
  return {
    size: file.size,
    close: async () => undefined,
    async read(from, to) {
      signal.throwIfAborted()
      const end = Math.min(to, file.size)
      onBytes(Math.max(0, end - furthest))
      furthest = Math.max(furthest, end)
      return window.read(from, to).catch((cause: unknown) => {
        throw fileChangedError(file.name, cause)
      })
    },
  }
}

/** Maximum number of files and folders. A folder with more is not a model. */
const MAX_FOLDER_ENTRIES = 10_000

/** The part of a directory handle that TypeScript's DOM types lack. */
interface Directory {
  values(): AsyncIterable<FileSystemFileHandle | FileSystemDirectoryHandle>
}

/**
 * Resolves with the files below a folder and their paths in it. Rejects with `invalid_request` if
 * there are too many for a model, and with the reason of the signal.
 */
export async function listFolder(
  folder: FileSystemDirectoryHandle,
  signal: AbortSignal,
): Promise<ChosenFile[]> {
  const files: ChosenFile[] = []
  let count = 0

  async function walk(directory: FileSystemDirectoryHandle, prefix: string): Promise<void> {
    for await (const handle of (directory as unknown as Directory).values()) {
      signal.throwIfAborted()
      count += 1
      if (count > MAX_FOLDER_ENTRIES) throw tooManyFiles()
      const path = `${prefix}${handle.name}`
      if (handle.kind === 'directory') await walk(handle, `${path}/`)
      else files.push({ path, file: await handle.getFile() })
    }
  }

  await walk(folder, '')
  return files
}

function tooManyFiles(): InoriginError {
  const limit = `more than ${MAX_FOLDER_ENTRIES} files and folders`
  const what = `The folder has ${limit}, too many for a model.`
  return new InoriginError('invalid_request', `${what} Choose the folder of the model itself.`, {
    code: 'too_many_files',
    param: 'files',
  })
}

/**
 * Returns the folder of the model, with a trailing slash: the one with the uppermost configuration
 * file. Returns an empty string if there is no such file.
 */
export function findModelFolder(files: readonly ChosenFile[]): string {
  const [first] = files
    .map(({ path }) => path)
    .filter((path) => CONFIG_NAMES.includes(nameOf(path)))
    .toSorted((one, other) => one.split('/').length - other.split('/').length)
  return first === undefined ? '' : first.slice(0, -nameOf(first).length)
}

const CONFIG_NAMES = ['config.json', CONFIG_FILE]

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
