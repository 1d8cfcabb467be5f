/** Graphs that nobody trained, and folders from which they are added. */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { CatalogDocument, PredictorEntry } from '../../../src/catalog/schema.ts'
import { add, type AddOptions } from '../../../src/cli/add.ts'
import { type BindingFlags, parseBindingFlags } from '../../../src/cli/commands/add.ts'
import { formatAddReport } from '../../../src/cli/report.ts'
import { type Graph, onnxFile, type Port, type Weight } from '../../support/onnx.ts'
import { validate } from '../catalog/entries.ts'

export const ROOT = join(import.meta.dirname, '../../..')

export const GUIDE = join(ROOT, 'demo/models/guide')

/** Reads a port such as `x float32 batch,4`: its name, its type and its shape, which may be left out. */
export function toPort(written: string): Port {
  const [name = '', type = '', shape] = written.split(' ')
  const lengths = shape
    ?.split(',')
    .map((length) => (/^\d+$/.test(length) ? Number(length) : length))
  return { name, type: type as Port['type'], shape: lengths ?? null }
}

/** `y = x * w + sum(ids)`, and values of other types as they are; weights lie in a file of their own. */
export const MIXED: Graph = {
  description: 'Adds and passes on.',
  inputs: [
    ...['x float32 batch,4', 'ids int64 n'].map(toPort),
    { name: 'flag', type: 'bool', shape: [] },
    // With a weight of the same name, `w` need not be given.
    ...['words.0 string k', 'free uint8', 'w float32 4,2'].map(toPort),
  ],
  outputs: [
    toPort('y float32 batch,2'),
    { name: 'not flag', type: 'bool', shape: [] },
    ...['words string k', 'same uint8'].map(toPort),
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
    weight('w', [4, 2], { location: 'weights/w.bin', offset: 4096, length: 32 }, 'float32'),
  ],
}

/** The file of {@link MIXED}'s weights: 1 to 8, behind a page of nothing. */
export const WEIGHTS: Uint8Array = (() => {
  const bytes = new Uint8Array(4096 + 32)
  bytes.set(new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8).buffer), 4096)
  return bytes
})()

/** Two scores of samples: their sum. */
export const SOUND: Graph = {
  inputs: [toPort('input_values float32 batch_size,sequence_length')],
  outputs: [toPort('logits float32 batch_size,2')],
  nodes: [
    { type: 'ReduceSum', inputs: ['input_values', 'axes'], outputs: ['sum'] },
    { type: 'Concat', inputs: ['sum', 'sum'], outputs: ['logits'], attributes: { axis: 1 } },
  ],
  weights: [weight('axes', [1], { integers: [1] }, 'int64')],
}

/** One operator between one input and one output. */
export const passing = (port: Partial<Graph['inputs'][number]>, type = 'Identity'): Graph => {
  const full = { name: 'x', type: 'float32', shape: ['n'], ...port } as const
  return {
    inputs: [full],
    outputs: [{ ...full, name: 'y' }],
    nodes: [{ type, inputs: [full.name], outputs: ['y'] }],
  }
}

/** A weight of a graph, of bytes unless the type says otherwise. */
export function weight(
  name: string,
  shape: readonly number[],
  data: Weight['data'],
  type: Weight['type'] = 'uint8',
): Weight {
  return { name, type, shape, data }
}

/** Creates a folder for one test. */
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

/** Adds a model to the folder's `public`, as the command does. */
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

/** Returns the catalog in the folder's `public`. */
export const catalogIn = (folder: string): CatalogDocument =>
  JSON.parse(readFileSync(join(folder, 'public/inorigin/catalog.json'), 'utf8')) as CatalogDocument

/** Checks that every resource, joined from the files at its URL, is what its entry says. */
export function expectWhole(folder: string): void {
  const document = catalogIn(folder)
  validate(document)
  const hash = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
  const resources = document.entries.flatMap(({ implementations = [] }) =>
    implementations.flatMap((one) => one.resources),
  )
  for (const { url, bytes, sha256, chunks, partBytes } of resources) {
    const path = join(folder, 'public/inorigin', decodeURIComponent(url))
    const count = Math.ceil(bytes / (partBytes ?? bytes))
    const parts = Array.from({ length: count }, (_, index) => `${path}.${index}`)
    const pieces = (partBytes === undefined ? [path] : parts).map((part) => readFileSync(part))
    expect(pieces.every((piece) => piece.length <= (partBytes ?? bytes))).toBe(true)
    const whole = Buffer.concat(pieces)
    expect([whole.length, hash(whole)], url).toEqual([bytes, sha256])
    const size = 16 * 2 ** 20
    const expected = Array.from({ length: Math.ceil(bytes / size) }, (_, index) =>
      hash(whole.subarray(index * size, (index + 1) * size)),
    )
    expect(chunks ?? expected).toEqual(expected)
  }
}

/** Returns the content of a JSON file. */
export const json = (content: unknown): string => JSON.stringify(content)

/** Returns a configuration of these classes. */
export const classes = (names: readonly string[], changes: object = {}) => ({
  architectures: ['BertForSequenceClassification'],
  id2label: Object.fromEntries(names.entries()),
  ...changes,
})

export type Files = Parameters<typeof freshFolder>[0]

/** Adds the folder `m` of the files, and returns its entry and what the command prints. */
export async function addFolder(files: Files, flags: BindingFlags = {}, tensors: string[] = []) {
  const folder = freshFolder(files)
  const result = await addIn(folder, 'm', { wishes: parseBindingFlags(flags), tensors })
  expectWhole(folder)
  const [entry] = catalogIn(folder).entries
  return {
    entry: entry as PredictorEntry,
    binding: (name: string) => (entry as PredictorEntry).implementations[0]?.bindings?.[name],
    notes: result.notes,
    printed: formatAddReport(result, { publicDir: join(folder, 'public') }).join('\n'),
  }
}
