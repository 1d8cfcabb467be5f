/** Drafts a catalog entry for an unlisted tag from files that a user chose in a page. */
import * as v from 'valibot'
import { getOwner } from '../catalog/find-entry.ts'
import { entrySchema, type Entry, type Implementation, type Resource } from '../catalog/schema.ts'
import { tagSchema } from '../catalog/value-schemas.ts'
import { InoriginError } from '../error.ts'
import { toImportUrl } from '../store/imported-entries.ts'
import { withCheckProgress, type ImportOptions } from '../store/import.ts'
import type { ChosenFile, ImportWishes, Tag } from '../types/index.ts'
import { findModelFolder } from './user-files.ts'
import { openBlob } from './blob.ts'
import type { Folder } from './folder.ts'
import { kindOf, planKind } from './kind.ts'
import type { Plan, PlanOptions } from './plan.ts'
import { titleOf } from './texts.ts'

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
  if (name !== undefined && !isText(name)) {
    throw invalidOption('name', 'a non-empty string. Omit it to use the name of the files')
  }
  if (Array.isArray(tensors) && tensors.every(isText)) return
  throw invalidOption('tensors', 'an array of input names')
}

function invalidOption(param: string, what: string): InoriginError {
  return new InoriginError('invalid_request', `${param} must be ${what}.`, {
    code: 'invalid_value',
    param,
  })
}
