/** Files that become a tag of the user's own, of several imports at once. */
import { expect, test } from 'vitest'
import type { ImplementationSelector } from '../../../src/host/choice/selector.ts'
import { createEntries } from '../../../src/host/library/entries.ts'
import { createImporter } from '../../../src/host/library/import.ts'
import { resourcesOf } from '../../../src/host/library/catalog-index.ts'
import { hasResource, readResource } from '../../../src/store/resources.ts'
import type { Imported, ImportWishes } from '../../../src/types/index.ts'
import { onnxFile } from '../../support/onnx.ts'
import { freshDatabase, never } from './fixture.ts'

const TAG = '@me/own'

/** A graph of its own for each name. */
const graphOf = (name: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(
    onnxFile({
      inputs: [{ name, type: 'float32', shape: [1] }],
      outputs: [{ name: 'y', type: 'float32', shape: [1] }],
      nodes: [{ type: 'Identity', inputs: [name], outputs: ['y'] }],
    }),
  )

function open() {
  const database = freshDatabase()
  const entries = createEntries(database, async () => ({ entries: [] }) as never)
  const selector = {
    select: async ({ implementations }: { implementations: readonly unknown[] }) => ({
      implementation: implementations.at(-1),
    }),
  } as unknown as ImplementationSelector
  const importTag = createImporter({
    database,
    entries,
    selector,
    models: { unload: () => undefined },
    onDownload: () => undefined,
  })
  const taking = (
    files: Record<string, BlobPart>,
    wishes: ImportWishes = {},
  ): Promise<Imported> => {
    const chosen = Object.entries(files).map(([path, content]) => ({
      path,
      file: new File([content], path),
    }))
    return importTag(TAG, chosen, wishes, { key: null, signal: never() })
  }
  const importing = (name: string) => taking({ [`${name}.onnx`]: graphOf(name) })
  const isWhole = async () => {
    const here = resourcesOf(await entries.all()).map(({ sha256 }) => hasResource(database, sha256))
    return here.length > 0 && (await Promise.all(here)).every(Boolean)
  }
  return { database, entries, taking, importing, isWhole }
}

test('whatever is imported for one tag at once, the last of it is what the tag is, and whole', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { importing, isWhole } = open()
    const names = ['one', 'two', 'three', 'four']
    const ended = await Promise.allSettled(names.map((name) => importing(name)))
    expect(ended.map(({ status }) => status)).toEqual(names.map(() => 'fulfilled'))
    expect(await isWhole()).toBe(true)
  }
})

/** A graph whose weights lie beside it. */
const WEIGHED = new Uint8Array(
  onnxFile({
    inputs: [{ name: 'x', type: 'float32', shape: [1, 1] }],
    outputs: [{ name: 'y', type: 'float32', shape: [1, 1] }],
    nodes: [{ type: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
    weights: [
      {
        name: 'w',
        type: 'float32',
        shape: [1, 1],
        data: { location: 'w.bin', offset: 0, length: 4 },
      },
    ],
  }),
)

test('the same graph with other weights is another model, and so is what is wished otherwise', async () => {
  const { taking, database, entries, isWhole } = open()
  const weights = async () => {
    const found = resourcesOf(await entries.all()).find(({ name }) => name === 'w.bin')
    const blob = found && (await readResource(database, found.sha256))
    return blob && [...new Float32Array(await blob.arrayBuffer())]
  }
  const named = async () => (await entries.all()).map(({ name }) => name)
  await taking({ 'm.onnx': WEIGHED, 'w.bin': Float32Array.of(1) })
  await taking({ 'm.onnx': WEIGHED, 'w.bin': Float32Array.of(2) })
  expect([await weights(), await isWhole()]).toEqual([[2], true])

  // What it has already needs no second look, nor does a part of it.
  expect(await taking({ 'w.bin': Float32Array.of(2), 'notes.txt': '?' })).toMatchObject({
    files: ['w.bin'],
    ignored: ['notes.txt'],
    bytes: 0,
    complete: true,
  })
  await taking({ 'm.onnx': WEIGHED, 'w.bin': Float32Array.of(2) }, { name: 'Mine' })
  expect([await named(), await weights()]).toEqual([['Mine'], [2]])
})
