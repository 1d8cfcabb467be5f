/** Options of `inorigin add` that are tried with the model and the files beside it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type BindingFlags, parseBindingFlags } from '../../../src/cli/commands/add.ts'
import { addIn, catalogIn, expectWhole, freshFolder, passing, toPort } from './graphs.ts'

/** An image of a fixed size, a state, and outputs of the same and of other shapes. */
const GRAPH = {
  inputs: ['x float32 n,3,8,8', 'h float32 1,4', 'wave float32 1,6'].map(toPort),
  outputs: ['y float32 n,3,1,1', 'hn float32 1,4', 'longer float32 1,10'].map(toPort),
  nodes: [
    { type: 'GlobalAveragePool', inputs: ['x'], outputs: ['y'] },
    { type: 'Identity', inputs: ['h'], outputs: ['hn'] },
    { type: 'Concat', inputs: ['h', 'wave'], outputs: ['longer'], attributes: { axis: 1 } },
  ],
}
const SCORES = passing({ shape: ['n', 3] })

const folderOf = () =>
  freshFolder({
    'm.onnx': GRAPH,
    'scores.onnx': SCORES,
    'names/en.txt': 'cat\ndog\nowl\n',
    'short.txt': 'a\nb',
    'empty.txt': '',
  })
const addWith = (folder: string, source: string, flags: BindingFlags) =>
  addIn(folder, source, { wishes: parseBindingFlags(flags) })

const image = (flags: BindingFlags): BindingFlags => ({ image: ['x'], ...flags })
const labeled = (step: string, file: string): BindingFlags => ({
  step: [`y=${step}`],
  labels: [`y=${file}`],
})

test.each<[string, BindingFlags, string]>([
  ['m.onnx', image({ mean: '1,2' }), 'inputs.x: `mean` must have 1 or 3'],
  ['m.onnx', image({ size: '9x9' }), 'inputs.x: its layout has the shape [1, 3, 9, 9]'],
  ['m.onnx', image({ channels: 'gray' }), 'inputs.x: its layout has the shape [1, 1,'],
  ['m.onnx', image({ 'multiple-of': '32' }), 'inputs.x: `multipleOf` is'],
  ['m.onnx', { audio: ['wave=16000'], window: '7' }, 'inputs.wave: takes 6 samples, not 7'],
  [
    'm.onnx',
    { state: ['h=longer'] },
    '--state h=longer: longer has the shape [1, 10], but h takes [1, 4]',
  ],
  [
    'scores.onnx',
    labeled('top-k', 'short.txt'),
    '--step y: the output has 3 classes, but there are 2 labels.',
  ],
  [
    'scores.onnx',
    labeled('ctc,space', 'short.txt'),
    '--step y: the output has 3 classes, but there are 3 characters and a blank.',
  ],
  ['scores.onnx', labeled('top-k', 'none.txt'), 'none.txt. Put the file beside the model'],
  ['scores.onnx', labeled('top-k', 'empty.txt'), '--labels y: empty.txt has no labels.'],
  [
    'scores.onnx',
    labeled('top-k', 'metadata:names'),
    '--labels y: the metadata names of the model has no labels.',
  ],
])('%s with %j is refused before anything is copied', async (source, flags, message) => {
  const folder = folderOf()
  const adding = addWith(folder, source, flags)
  await expect(adding).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(adding).rejects.toThrow(message)
  expect(existsSync(join(folder, 'public/inorigin/@me'))).toBe(false)
})

test('Options that fit are accepted', async () => {
  const sound = { audio: ['wave=16000'], window: '5', context: '1' }
  const flags = { ...image({ mean: '1,2,3' }), ...sound, state: ['h=hn'] }
  const { entry } = await addWith(folderOf(), 'm.onnx', flags)
  expect(entry).toMatchObject({ states: [{ input: 'h', output: 'hn' }] })
})

test('A file of labels is copied with the model and named in its entry', async () => {
  const folder = folderOf()
  const { files } = await addWith(folder, 'scores.onnx', labeled('top-k', 'names/en.txt'))
  expect(files).toBe(2)
  const [{ implementations = [] } = {}] = catalogIn(folder).entries
  const step = { step: 'top-k', count: 5, labels: { file: 'names/en.txt' } }
  expect(implementations[0]).toMatchObject({
    bindings: { y: { steps: [step] } },
    resources: [{ type: 'onnx' }, { type: 'config', name: 'names/en.txt' }],
  })
  expectWhole(folder)
  const copied = join(folder, 'public/inorigin/@me/model/names/en.txt')
  expect(readFileSync(copied, 'utf8')).toBe('cat\ndog\nowl\n')
})
