/** Loads the names of classes from files and from the metadata of models. */
import type { Implementation, Labels, PredictorEntry, Step } from '../catalog/schema.ts'
import type { Files } from '../engine/engine.ts'
import {
  createWindow,
  ENTRY,
  fieldsOfFile,
  type Sliceable,
  textsOf,
} from '../engine/onnx/protobuf.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import { isObject, isObjectOrArray } from '../values/objects.ts'

/** Maximum size in bytes of a file or an entry that is read. Lists of characters have up to 100 kB. */
const MAX_LABELS_BYTES = 2 ** 22

/** Names of classes by their source, as {@link toLabelsKey} writes it. */
export type LabelTable = ReadonlyMap<string, readonly string[]>

export const toLabelsKey = (source: Labels): string => JSON.stringify(source)

export const getLabelsSource = (step: Step): Labels | undefined =>
  'labels' in step ? step.labels : undefined

/** Resolves with the labels of all steps. Rejects with `unavailable` if some cannot be read. */
export async function openLabels(
  { tag }: PredictorEntry,
  { bindings = {}, resources }: Implementation,
  files: Files,
): Promise<LabelTable> {
  const graph = resources.find(({ type }) => type === 'onnx')?.name ?? ''
  const sources = Object.values(bindings).flatMap(({ steps = [] }) =>
    steps.flatMap((step) => getLabelsSource(step) ?? []),
  )
  const opened = sources.map(async (source): Promise<[string, readonly string[]]> => {
    const names = await readNames(source, {
      file: async (name) => readShortText(files.get(name) ?? new Blob()),
      metadata: (key) => readMetadata(files.get(graph) ?? new Blob(), key),
    })
    const at = 'file' in source ? `resources.${source.file}` : 'metadata'
    return [toLabelsKey(source), names ?? throwPredictorUnusable(tag, at, 'has no labels.')]
  })
  return new Map(await Promise.all(opened))
}

const readShortText = async (file: Blob): Promise<string> =>
  file.size <= MAX_LABELS_BYTES ? file.text() : ''

/** Access to what labels name: a file of the implementation, and the metadata of its graph. */
interface LabelTexts {
  file(name: string): Promise<string>
  metadata(key: string): Promise<string | null>
}

/** Resolves with the names of the classes, or with `null` if the source has none. */
export async function readNames(
  source: Labels,
  { file, metadata }: LabelTexts,
): Promise<readonly string[] | null> {
  if ('names' in source) return source.names
  if ('metadata' in source) return parseLabels((await metadata(source.metadata)) ?? '')
  return parseLabels(partOf(await file(source.file), source.key))
}

/** Returns the value of a key of a JSON object as text; an empty one if there is none. */
function partOf(text: string, key: string | undefined): string {
  if (key === undefined) return text
  try {
    const whole: unknown = JSON.parse(text)
    const part = isObject(whole) && Object.hasOwn(whole, key) ? whole[key] : null
    return isObjectOrArray(part) ? JSON.stringify(part) : ''
  } catch {
    return ''
  }
}

/** Members of a dictionary as Python prints it: a number and a quoted name. */
const PYTHON_MEMBERS = /(\d+)\s*:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g

/**
 * Returns the names in the order of the classes, or `null` if the text has none. The text is a JSON
 * array, a JSON object of names by index or of indices by name, a dictionary of Python, or has one
 * name in each line.
 */
export function parseLabels(text: string): readonly string[] | null {
  const start = text.trimStart()
  if (/^[[{]/.test(start)) {
    const members = parseJson(start) ?? parsePythonMembers(start)
    if (members && members.length > 0) return orderMembers(members)
  }
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/)
  return text === '' ? null : lines
}

type Members = readonly (readonly [index: unknown, name: unknown])[]

function parseJson(text: string): Members | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (Array.isArray(value)) return [...value.entries()]
  if (!isObject(value)) return null
  return Object.entries(value).map(([key, member]) =>
    typeof member === 'number' ? [member, key] : [key, member],
  )
}

const parsePythonMembers = (text: string): Members =>
  Array.from(text.matchAll(PYTHON_MEMBERS), ([, index, single, double]) => [
    index,
    (single ?? double ?? '').replace(/\\(.)/g, '$1'),
  ])

/** Returns the names of the classes 0, 1, 2 and so on, or `null` if one of them is missing. */
function orderMembers(members: Members): readonly string[] | null {
  const names = new Map(members.map(([index, name]) => [Number(index), String(name)]))
  const ordered = Array.from({ length: names.size }, (_, index) => names.get(index) ?? [])
  return ordered.length > 0 && ordered.flat().length === names.size ? ordered.flat() : null
}

/** Number of the field in onnx.proto. */
const MODEL_METADATA = 14

/** Resolves with the value of a key in the metadata of an ONNX file, or `null` without one. */
export async function readMetadata(model: Sliceable, key: string): Promise<string | null> {
  const file = createWindow(model)
  for await (const { number, from, to } of fieldsOfFile(file, 0, model.size)) {
    if (number !== MODEL_METADATA || to - from > MAX_LABELS_BYTES) continue
    const entry = await file.read(from, to)
    if (textsOf(entry, ENTRY.key)[0] === key) return textsOf(entry, ENTRY.value)[0] ?? null
  }
  return null
}
