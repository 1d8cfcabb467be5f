/** Steps and labels of outputs, from the options of `inorigin add` to the files that it copies. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type BindingFlags, parseBindingFlags } from '../../../src/cli/add/binding-flags.ts'
import { addIn, catalogIn, expectWhole, freshFolder, passing } from './graphs.ts'

const SCORES = passing({ shape: ['n', 3] })

const adding = (folder: string, flags: BindingFlags) =>
  addIn(folder, 'models/m.onnx', { wishes: parseBindingFlags(flags) })

test('a file of labels lies beside the model, is copied with it and is named in its entry', async () => {
  const folder = freshFolder({ 'models/m.onnx': SCORES, 'models/names/en.txt': 'cat\ndog\nowl\n' })
  const { files } = await adding(folder, { step: ['y=top-k'], labels: ['y=names/en.txt'] })
  expect(files).toBe(2)
  const [{ implementations = [] } = {}] = catalogIn(folder).entries
  expect(implementations[0]).toMatchObject({
    bindings: {
      y: { steps: [{ step: 'top-k', count: 5, labels: { file: 'names/en.txt' } }] },
    },
    resources: [{ type: 'onnx' }, { type: 'config', name: 'names/en.txt' }],
  })
  expectWhole(folder)
  const copied = join(folder, 'public/inorigin/@me/model/names/en.txt')
  expect(readFileSync(copied, 'utf8')).toBe('cat\ndog\nowl\n')
})

test.each<[BindingFlags, string]>([
  [
    { step: ['y=top-k'], labels: ['y=short.txt'] },
    '--step y: the output has 3 classes, but there are 2 labels.',
  ],
  [
    { step: ['y=ctc,space'], labels: ['y=short.txt'] },
    '--step y: the output has 3 classes, but there are 3 characters and a blank.',
  ],
  [{ step: ['y=top-k'], labels: ['y=none.txt'] }, 'none.txt. Put the file beside the model'],
  [{ step: ['y=top-k'], labels: ['y=empty.txt'] }, '--labels y: empty.txt has no labels.'],
  [
    { step: ['y=top-k'], labels: ['y=metadata:names'] },
    '--labels y: the metadata names of the model has no labels.',
  ],
])('%j is refused before anything is copied', async (flags, message) => {
  const folder = freshFolder({
    'models/m.onnx': SCORES,
    'models/short.txt': 'a\nb',
    'models/empty.txt': '',
  })
  const refused = adding(folder, flags)
  await expect(refused).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(refused).rejects.toThrow(message)
  expect(existsSync(join(folder, 'public/inorigin/@me'))).toBe(false)
})
