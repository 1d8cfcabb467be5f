/** Drafts a catalog entry for an unlisted tag from files that a user chose in a page. */
import * as v from 'valibot'
import { getOwner } from '../catalog/find-entry.ts'
import { CONFIG_FILE } from '../catalog/mlc/model-files.ts'
import { type Entry, entrySchema, type Implementation, type Resource } from '../catalog/schema.ts'
import { tagSchema } from '../catalog/value-schemas.ts'
import { createWindow } from '../engine/onnx/protobuf.ts'
import { InoriginError } from '../error.ts'
import { fileChangedError, type ImportOptions, withCheckProgress } from '../store/import-file.ts'
import { toImportUrl } from '../store/imported-entries.ts'
import type { ChosenFile, ImportWishes, Tag } from '../types/index.ts'
import type { Folder, OpenFile } from './folder.ts'
import { GENAI_CONFIG } from './genai.ts'
import { kindOf, planKind } from './kind.ts'
import { type Plan, type PlanOptions, titleOf } from './plan.ts'

type DraftOptions = Pick<ImportOptions, 'tag' | 'signal' | 'onProgress'>

/**
 * Resolves with the plan of an entry for the files. They are one graph with its weights, a GGUF file
 * or all parts of one, a folder of exports for the web or of ONNX Runtime GenAI, or a folder compiled
 * by MLC. The items have the paths of the files. Progress is reported as the `check` phase of an import. Rejects with `invalid_request`
 * if something is missing or wrong, and with the reason of the signal.
 */
export async function draftUnlisted(
  tag: Tag,
  files: readonly ChosenFile[],
  { name, tensors = [] }: ImportWishes,
  importOptions: DraftOptions,
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

/** Returns the entry, with the implementations whose files have a hash; all if there is none. */
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
  importOptions: DraftOptions,
): Promise<Plan> {
  const inside = new Map(
    files
      .filter(({ path }) => path.startsWith(root))
      .map(({ path, file }) => [path.slice(root.length), file] as const)
      .filter(([path]) => !path.split('/').some((part) => part.startsWith('.'))),
  )
  // Weights are large and are not read, so they do not count for the progress.
  const checkedFiles = [...inside].flatMap(([path, file]) =>
    /\.(onnx|json)$/.test(path) ? [file] : [],
  )
  const title = root.replace(/\/$/, '') || 'The selection'
  return withCheckProgress(checkedFiles, importOptions, (onBytes) => {
    // A file may be opened several times. Its bytes count once.
    const ends = new Map(checkedFiles.map((file) => [file, 0]))
    const countTo = (file: File, end: number): void => {
      const last = ends.get(file) ?? end
      if (end > last) onBytes(end - last)
      if (end > last) ends.set(file, end)
    }
    const folder: Folder = {
      nameOf: (path) => (path === '' ? title : root + path),
      sizeOf: (path) => inside.get(path)?.size,
      open: async (path) => openBlob(inside.get(path) as File, importOptions.signal, countTo),
    }
    const listed = Array.from(inside, ([path, { size }]) => {
      return { path, bytes: size, sha256: null, blobId: '' }
    }).toSorted((one, other) => (one.path < other.path ? -1 : 1))
    return planKind(folder, kindOf(title, listed), listed, options)
  })
}

/** Returns the name of the files, or that of the tag if theirs tells nothing, such as `model`. */
function nameFor(tag: Tag, root: string, { entry, implementations }: Plan): string {
  const isGguf = implementations.some(({ items }) => items.some(({ type }) => type === 'gguf'))
  const isDescriptive = entry.type === 'model' ? root !== '' || isGguf : entry.name !== 'Model'
  return isDescriptive ? entry.name : titleOf(tag)
}

const invalid = (what: string, code: InoriginError['code'], param: string): InoriginError =>
  new InoriginError('invalid_request', what, { code, param })

function checkTag(tag: Tag): void {
  const { issues, success } = v.safeParse(tagSchema, tag)
  if (success && getOwner(tag) !== 'inorigin') return
  const why = success ? 'tags of @inorigin are reserved' : issues[0].message
  throw invalid(`${tag}: ${why}. Use one such as @me/name.`, 'import_tag', 'tag')
}

function checkWishes({ name, tensors }: ImportWishes): void {
  const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''
  if (name !== undefined && !isText(name)) {
    const what = 'name must be a non-empty string. Omit it to use the name of the files.'
    throw invalid(what, 'invalid_value', 'name')
  }
  if (!Array.isArray(tensors) || !tensors.every(isText))
    throw invalid('tensors must be an array of input names.', 'invalid_value', 'tensors')
}

/** Returns a file that reports how far it is read. Reads reject after an abort and a change. */
function openBlob(
  file: File,
  signal: AbortSignal,
  onRead: (file: File, end: number) => void,
): OpenFile {
  const { size } = file
  const window = createWindow(file)
  return {
    size,
    close: async () => undefined,
    async read(from, to) {
      signal.throwIfAborted()
      const end = Math.min(to, size)
      onRead(file, end)
      return window.read(from, to).catch((cause: unknown) => {
        throw fileChangedError(file.name, cause)
      })
    },
  }
}

/** Maximum number of files and folders. A folder with more is not a model. */
const MAX_FOLDER_ENTRIES = 10_000

/** Resolves with the files below a folder. Rejects if they are too many, and with an abort. */
export async function listFolder(
  folder: FileSystemDirectoryHandle,
  signal: AbortSignal,
): Promise<ChosenFile[]> {
  const files: ChosenFile[] = []
  let count = 0

  async function walk(directory: FileSystemDirectoryHandle, prefix: string): Promise<void> {
    type Handle = FileSystemFileHandle | FileSystemDirectoryHandle
    // TypeScript's DOM types lack this method.
    const { values } = directory as unknown as { values(): AsyncIterable<Handle> }
    for await (const handle of values.call(directory)) {
      signal.throwIfAborted()
      count += 1
      if (count > MAX_FOLDER_ENTRIES) {
        const what = `The folder has more than ${MAX_FOLDER_ENTRIES} files and folders`
        throw invalid(
          `${what}, too many for a model. Choose the folder of the model itself.`,
          'too_many_files',
          'files',
        )
      }
      const path = `${prefix}${handle.name}`
      if (handle.kind === 'directory') await walk(handle, `${path}/`)
      else files.push({ path, file: await handle.getFile() })
    }
  }

  await walk(folder, '')
  return files
}

/** Returns the folder of the uppermost configuration file, such as `a/`, or an empty string. */
export function findModelFolder(files: readonly ChosenFile[]): string {
  const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
  const [first] = files
    .map(({ path }) => path)
    .filter((path) => ['config.json', GENAI_CONFIG, CONFIG_FILE].includes(nameOf(path)))
    .toSorted((one, other) => one.split('/').length - other.split('/').length)
  return first === undefined ? '' : first.slice(0, -nameOf(first).length)
}
