/** Files that a user chose in a page, as a catalog entry of a tag that no catalog has. */
import * as v from 'valibot'
import { ownerOf } from '../../catalog/resolve.ts'
import {
  entrySchema,
  type Entry,
  type Implementation,
  type Resource,
} from '../../catalog/schema.ts'
import { tag as tagSchema } from '../../catalog/values.ts'
import { InoriginError } from '../../error.ts'
import { importedUrl } from '../../store/entries.ts'
import { checkFiles, type ImportOptions } from '../../store/import.ts'
import type { ChosenFile, ImportWishes, Tag } from '../../types/index.ts'
import { rootOf } from '../chosen.ts'
import { openBlob } from './blob.ts'
import type { Folder } from './folder.ts'
import { kindOf } from './kind.ts'
import { planMlc } from './mlc.ts'
import { planGraph, planLayout, refuseTensors, type Plan, type PlanOptions } from './plan.ts'
import { titleOf } from './texts.ts'

/**
 * What they are: one graph with its weights beside it, a folder as exports for the web have it, or one
 * that MLC compiled a model to. Paths of its items are those of the files. What is read is told as the
 * `check` of an import. Rejects with `invalid_request` that says what is missing or wrong, and with the
 * signal's reason.
 */
export async function draftOwn(
  tag: Tag,
  files: readonly ChosenFile[],
  { name, tensors = [] }: ImportWishes,
  how: Pick<ImportOptions, 'tag' | 'signal' | 'onProgress'>,
): Promise<Plan> {
  checkTag(tag)
  checkWishes({ name, tensors })
  const root = rootOf(files)
  const keep = (input: string): string => `tensors: ['${input}']`
  const options: PlanOptions = {
    devices: ['webgpu', 'wasm'],
    dtypes: null,
    tensors: new Set(tensors),
    keep,
  }
  try {
    const plan = await planIn(root, files, options, how)
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
    if (how.signal.aborted) throw how.signal.reason
    const error = InoriginError.from(thrown)
    if (error.kind !== 'invalid_request' || error.code !== undefined) throw error
    throw unfit(tag, error.message, error)
  }
}

/** Throws `invalid_request` for what no catalog could list, such as an input without a name. */
export function checkEntry(entry: Entry): void {
  const { issues, success } = v.safeParse(entrySchema, entry)
  if (success) return
  throw unfit(entry.tag, `${v.getDotPath(issues[0])} cannot be described (${issues[0].message}).`)
}

function unfit(tag: Tag, why: string, cause?: unknown): InoriginError {
  const what = `${tag} is in no catalog, and becomes no tag of your own: ${why}`
  return new InoriginError('invalid_request', what, { code: 'import_unfit', param: 'files', cause })
}

/** With those of its implementations of whose files all hashes are known; without any, with all. */
export function toEntry(tag: Tag, plan: Plan, hashes: ReadonlyMap<string, string>): Entry {
  const implementations = plan.implementations
    .filter(({ items }) => hashes.size === 0 || items.every(({ path }) => hashes.has(path)))
    .map(({ items, ...planned }): Implementation => ({
      ...planned,
      resources: items.map(({ type, name, path, bytes }): Resource => ({
        type,
        url: importedUrl(name),
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
  how: Pick<ImportOptions, 'tag' | 'signal' | 'onProgress'>,
): Promise<Plan> {
  const inside = new Map(
    files
      .filter(({ path }) => path.startsWith(root))
      .map(({ path, file }) => [path.slice(root.length), file] as const)
      .filter(([path]) => !path.split('/').some((part) => part.startsWith('.'))),
  )
  // Weights are long and are not read.
  const told = Array.from(inside, ([path, file]) =>
    /\.(onnx|json)$/.test(path) ? [file] : [],
  ).flat()
  return checkFiles(told, how, (onBytes) => {
    const folder: Folder = {
      nameOf: (path) => (path === '' ? titleFor(root) : root + path),
      sizeOf: (path) => inside.get(path)?.size,
      open: async (path) => openBlob(inside.get(path) as File, { signal: how.signal, onBytes }),
    }
    return planFolder(folder, titleFor(root), [...inside.keys()].toSorted(), options)
  })
}

async function planFolder(
  folder: Folder,
  title: string,
  paths: readonly string[],
  options: PlanOptions,
): Promise<Plan> {
  const found = kindOf(title, paths)
  if (found.kind === 'graph') return planGraph(folder, found.path, options)
  const listed = paths.map((path) => ({
    path,
    bytes: folder.sizeOf(path) ?? 0,
    sha256: null,
    blobId: '',
  }))
  if (found.kind === 'layout') return planLayout(folder, listed, options)
  refuseTensors(options)
  return planMlc(folder, listed)
}

const titleFor = (root: string): string => root.replace(/\/$/, '') || 'What was chosen'

/** A folder's handle does not tell what it is called, and files of one graph are mostly called `model`. */
function nameFor(tag: Tag, root: string, { entry }: Plan): string {
  const isTold = entry.type === 'model' ? root !== '' : entry.name !== 'Model'
  return isTold ? entry.name : titleOf(tag)
}

function checkTag(tag: Tag): void {
  const { issues, success } = v.safeParse(tagSchema, tag)
  const isReserved = success && ownerOf(tag) === 'inorigin'
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
    throw unwished(
      'name',
      'a text that is not empty. Leave it out, and the tag is called as its files are',
    )
  }
  if (Array.isArray(tensors) && tensors.every(isText)) return
  throw unwished('tensors', 'an array of names of inputs')
}

function unwished(param: string, what: string): InoriginError {
  return new InoriginError('invalid_request', `${param} must be ${what}.`, {
    code: 'invalid_value',
    param,
  })
}
