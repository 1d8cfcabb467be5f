/** Files of a model, on disk or chosen by a user in a page. */
import { refuse } from './refuse.ts'
import type { Window } from '../engine/onnx/protobuf.ts'
import { isObject } from '../values/objects.ts'

export interface OpenFile extends Window {
  size: number
  close(): Promise<void>
}

/** A folder. Its paths have forward slashes. */
export interface Folder {
  /** Returns the name of a file for messages. An empty path stands for the folder. */
  nameOf(path: string): string
  /** Returns the size in bytes; `undefined` if there is no such file. */
  sizeOf(path: string): number | undefined
  open(path: string): Promise<OpenFile>
}

/** Resolves with the content of a small file. */
export async function readText(folder: Folder, path: string): Promise<string> {
  const file = await folder.open(path)
  try {
    return new TextDecoder().decode(await file.read(0, file.size))
  } finally {
    await file.close()
  }
}

/** Resolves with the parsed file. Rejects with `invalid_request` if it is not a JSON object. */
export async function readJson(folder: Folder, path: string): Promise<Record<string, unknown>> {
  const fail = (what: string, cause?: unknown) =>
    refuse(`${folder.nameOf(path)} is not ${what}.`, 'Download it again.', cause)
  try {
    const json: unknown = JSON.parse(await readText(folder, path))
    if (isObject(json)) return json
  } catch (cause) {
    throw fail(`JSON: ${String(cause)}`, cause)
  }
  throw fail('a JSON object')
}

/** Returns the paths of all parts of a split file, in their order; the path itself of another one. */
export function listPartPaths(path: string): string[] {
  const [, before = '', , count = ''] = /^(.*)-(\d{5})-of-(\d{5})(?=\.gguf$)/i.exec(path) ?? []
  if (count === '') return [path]
  const end = path.slice(-'.gguf'.length)
  return Array.from({ length: Math.min(Number(count), MAX_PARTS) }, (_, index) => {
    return `${before}-${String(index + 1).padStart(5, '0')}-of-${count}${end}`
  })
}

/** Greatest number of parts; a guess. */
const MAX_PARTS = 1_000
