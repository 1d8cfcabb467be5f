/** Files of a model, on a disk or as a user chose them in a page. */
import { refuse } from './refuse.ts'
import type { Window } from '../../engine/onnx/protobuf.ts'
import { isObject } from '../../engine/schema/node.ts'

export interface OpenFile extends Window {
  /** In bytes. */
  size: number
  close(): Promise<void>
}

/** Paths have forward slashes. */
export interface Folder {
  /** What messages call a file; of an empty path, the folder. */
  nameOf(path: string): string
  /** In bytes; `undefined` where there is no such file. */
  sizeOf(path: string): number | undefined
  open(path: string): Promise<OpenFile>
}

/** The content of a small file. */
export async function readText(folder: Folder, path: string): Promise<string> {
  const file = await folder.open(path)
  try {
    return new TextDecoder().decode(await file.read(0, file.size))
  } finally {
    await file.close()
  }
}

/** Throws `invalid_request` where it is no object. */
export async function readJson(folder: Folder, path: string): Promise<Record<string, unknown>> {
  let json: unknown
  try {
    json = JSON.parse(await readText(folder, path))
  } catch (cause) {
    throw refuse(
      `${folder.nameOf(path)} is not JSON: ${String(cause)}.`,
      'Download it again.',
      cause,
    )
  }
  if (isObject(json)) return json
  throw refuse(`${folder.nameOf(path)} is no JSON object.`, 'Download it again.')
}
