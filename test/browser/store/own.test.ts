/** Files that become a tag of the user's own, of several imports at once. */
import { expect, test } from 'vitest'
import type { Choices } from '../../../src/host/choices.ts'
import { createEntries } from '../../../src/host/entries.ts'
import { createImporter } from '../../../src/host/import.ts'
import { resourcesOf } from '../../../src/host/known.ts'
import { hasResource } from '../../../src/store/resources.ts'
import type { Imported } from '../../../src/types/index.ts'
import { onnxFile } from '../../support/onnx.ts'
import { freshDatabase, never } from './fixture.ts'

const TAG = '@me/own'

/** A graph of its own for each name. */
const graphOf = (name: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(onnxFile({
    inputs: [{ name, type: 'float32', shape: [1] }],
    outputs: [{ name: 'y', type: 'float32', shape: [1] }],
    nodes: [{ type: 'Identity', inputs: [name], outputs: ['y'] }],
  }))

function open() {
  const database = freshDatabase()
  const entries = createEntries(database, async () => ({ entries: [] }) as never)
  const choices = {
    pick: async ({ implementations }: { implementations: readonly unknown[] }) => ({
      implementation: implementations.at(-1),
    }),
  } as unknown as Choices
  const take = createImporter({
    database, entries, choices, models: { unload: () => undefined }, onDownload: () => undefined,
  })
  const importing = (name: string, signal = never()): Promise<Imported> =>
    take(TAG, [{ path: `${name}.onnx`, file: new File([graphOf(name)], `${name}.onnx`) }], {}, signal, () => undefined)
  const isWhole = async () => {
    const here = resourcesOf(await entries.all()).map(({ sha256 }) => hasResource(database, sha256))
    return here.length > 0 && (await Promise.all(here)).every(Boolean)
  }
  return { importing, isWhole }
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
