/** Graphs that nobody trained, and folders to add them from. */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { CatalogDocument } from '../../../src/catalog/schema.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { add, type AddOptions } from '../../../src/cli/add.ts'
import { type Graph, onnxFile } from '../../support/onnx.ts'

export const ROOT = join(import.meta.dirname, '../../..')

export const GUIDE = join(ROOT, 'demo/models/guide')

/** `y = x * w + sum(ids)`, and values of other types as they are; weights lie in a file of their own. */
export const MIXED: Graph = {
  description: 'Adds and passes on.',
  inputs: [
    { name: 'x', type: 'float32', shape: ['batch', 4] },
    { name: 'ids', type: 'int64', shape: ['n'] },
    { name: 'flag', type: 'bool', shape: [] },
    { name: 'words.0', type: 'string', shape: ['k'] },
    { name: 'free', type: 'uint8', shape: null },
    // With a weight of the same name it need not be given.
    { name: 'w', type: 'float32', shape: [4, 2] },
  ],
  outputs: [
    { name: 'y', type: 'float32', shape: ['batch', 2] },
    { name: 'not flag', type: 'bool', shape: [] },
    { name: 'words', type: 'string', shape: ['k'] },
    { name: 'same', type: 'uint8', shape: null },
  ],
  nodes: [
    { type: 'MatMul', inputs: ['x', 'w'], outputs: ['xw'] },
    { type: 'Cast', inputs: ['ids'], outputs: ['floats'], attributes: { to: 1 } },
    { type: 'ReduceSum', inputs: ['floats'], outputs: ['sum'], attributes: { keepdims: 0 } },
    { type: 'Add', inputs: ['xw', 'sum'], outputs: ['y'] },
    { type: 'Not', inputs: ['flag'], outputs: ['not flag'] },
    { type: 'Identity', inputs: ['words.0'], outputs: ['words'] },
    { type: 'Identity', inputs: ['free'], outputs: ['same'] },
  ],
  weights: [
    {
      name: 'w',
      type: 'float32',
      shape: [4, 2],
      data: { location: 'weights/w.bin', offset: 4096, length: 32 },
    },
  ],
}

/** The file of {@link MIXED}'s weights: 1 to 8, behind a page of nothing. */
export const WEIGHTS: Uint8Array = (() => {
  const bytes = new Uint8Array(4096 + 32)
  bytes.set(new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8).buffer), 4096)
  return bytes
})()

/** One operator between one input and one output. */
export const passing = (port: Partial<Graph['inputs'][number]>, type = 'Identity'): Graph => {
  const full = { name: 'x', type: 'float32', shape: ['n'], ...port } as const
  return {
    inputs: [full],
    outputs: [{ ...full, name: 'y' }],
    nodes: [{ type, inputs: [full.name], outputs: ['y'] }],
  }
}

/** A folder for one test. */
export function freshFolder(
  files: Readonly<Record<string, Uint8Array | string | Graph>> = {},
): string {
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-add-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    const isPlain = typeof content === 'string' || content instanceof Uint8Array
    writeFileSync(path, isPlain ? content : onnxFile(content))
  }
  return folder
}

/** Adds it to the folder's `public`, as the command does. */
export function addIn(folder: string, source: string, options: Partial<AddOptions> = {}) {
  return add({
    source: join(folder, source),
    tag: '@me/model',
    publicDir: join(folder, 'public'),
    devices: ['webgpu', 'wasm'],
    dtypes: null,
    tensors: [],
    maxFileBytes: 25_000_000,
    force: false,
    dist: join(ROOT, 'no dist'),
    runtime: () => join(ROOT, 'node_modules/onnxruntime-web/dist'),
    signal: new AbortController().signal,
    onStep: () => undefined,
    ...options,
  })
}

/** The catalog in the folder's `public`. */
export function catalogIn(folder: string): CatalogDocument {
  return JSON.parse(
    readFileSync(join(folder, 'public/inorigin/catalog.json'), 'utf8'),
  ) as CatalogDocument
}

/** Every resource, put together again from what lies at its URL, is what its entry says. */
export function expectWhole(folder: string): void {
  const document = catalogIn(folder)
  validateCatalog(document, { source: 'test', base: 'http://localhost/', embedded: false })
  const home = join(folder, 'public/inorigin')
  for (const { implementations = [] } of document.entries) {
    for (const { url, bytes, sha256, chunks, partBytes } of implementations.flatMap(
      (one) => one.resources,
    )) {
      const path = join(home, decodeURIComponent(url))
      const parts =
        partBytes === undefined
          ? [path]
          : Array.from({ length: Math.ceil(bytes / partBytes) }, (_, index) => `${path}.${index}`)
      const pieces = parts.map((part) => readFileSync(part))
      expect(pieces.every((piece) => piece.length <= (partBytes ?? bytes))).toBe(true)
      const whole = Buffer.concat(pieces)
      const hash = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
      expect([whole.length, hash(whole)], url).toEqual([bytes, sha256])
      const size = 16 * 2 ** 20
      const expected = Array.from({ length: Math.ceil(bytes / size) }, (_, index) =>
        hash(whole.subarray(index * size, (index + 1) * size)),
      )
      expect(chunks ?? expected).toEqual(expected)
    }
  }
}
