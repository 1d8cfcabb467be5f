/** What a path given to `inorigin add` holds: one graph, or a folder as exports for the web have it. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import type { HubFile } from '../../catalog/hub/listing.ts'
import { CONFIG } from '../../catalog/mlc/layout.ts'
import type { Resource } from '../../catalog/schema.ts'
import type { OnnxModel } from '../onnx/model.ts'
import { refuse } from '../onnx/refuse.ts'

export type Source =
  | { kind: 'graph'; path: string }
  /** A folder with configuration, tokenizer and `onnx/`; files by their path in it. */
  | { kind: 'layout'; folder: string; files: HubFile[] }
  /** A folder of MLC's. */
  | { kind: 'mlc'; folder: string; files: HubFile[] }

/** Throws `invalid_request` that says what is expected there. */
export function findSource(path: string): Source {
  if (!existsSync(path)) throw refuse(`There is no ${path}.`, 'Name an .onnx file, or a folder.')
  if (!statSync(path).isDirectory()) return { kind: 'graph', path }
  const has = (name: string): boolean => existsSync(join(path, name))
  if (has(CONFIG)) return { kind: 'mlc', folder: path, files: listFiles(path) }
  if (has('config.json') && has('tokenizer.json') && has('onnx')) {
    return { kind: 'layout', folder: path, files: listFiles(path) }
  }
  const graphs = listFiles(path).filter((file) => file.path.endsWith('.onnx'))
  const [only] = graphs
  if (only && graphs.length === 1) return { kind: 'graph', path: join(path, only.path) }
  const expected = 'config.json, tokenizer.json and onnx/model*.onnx for a language model'
  if (!only) throw refuse(`${path} has no .onnx file.`, `Name a folder with one, or with ${expected}.`)
  const list = graphs.map((file) => file.path).join(', ')
  throw refuse(`${path} has ${graphs.length} graphs: ${list}.`, `Name one of them, or add ${expected}.`)
}

/** Files of a folder and of the folders in it, but for hidden ones. */
function listFiles(folder: string): HubFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.split(sep).some((part) => part.startsWith('.')))
    .map((name) => ({ name, stat: statSync(join(folder, name)) }))
    .filter(({ stat }) => stat.isFile())
    .map(({ name, stat }) => ({
      path: name.split(sep).join('/'), bytes: stat.size, sha256: null, blobId: '',
    }))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

/** A file that goes into the app, by its name among the resources. */
export interface Item {
  type: Resource['type']
  /** With forward slashes. */
  name: string
  path: string
  bytes: number
}

/**
 * Where it lies in the app, with forward slashes: servers differ in what they make of spaces, signs and
 * letters with accents in a URL, so that there are none.
 */
export function placeOf({ name }: Item): string {
  return name.replaceAll(/[^\w./-]/gu, (sign) => `_${sign.codePointAt(0)?.toString(16)}`)
}

/** A graph and the files of its weights; throws `invalid_request` that names the one that is missing. */
export function itemsOf(graph: string, { externalData }: OnnxModel): Item[] {
  const folder = dirname(graph)
  const data = externalData.map((location): Item => {
    const path = join(folder, location)
    const name = relative(folder, path).split(sep).join('/')
    if (isAbsolute(location) || name.startsWith('..')) {
      throw refuse(
        `${graph} keeps weights in ${location}, outside of its folder.`,
        'Save it again with its weights beside it.',
      )
    }
    if (!existsSync(path)) {
      throw refuse(
        `${graph} keeps weights in ${name}, which is not beside it.`,
        `Put ${basename(name)} there, or save the model again in one file.`,
      )
    }
    return { type: 'data', name, path, bytes: statSync(path).size }
  })
  return [{ type: 'onnx', name: basename(graph), path: graph, bytes: statSync(graph).size }, ...data]
}
