/** Options of `inorigin add` that no browser could apply to the model. */
import { expect, test } from 'vitest'
import { type BindingFlags, parseBindingFlags } from '../../../src/cli/add/binding-flags.ts'
import type { Graph } from '../../support/onnx.ts'
import { addIn, freshFolder } from './graphs.ts'

/** An image of a fixed size, a state, and outputs of the same and of other shapes. */
const GRAPH: Graph = {
  inputs: [
    { name: 'x', type: 'float32', shape: ['n', 3, 8, 8] },
    { name: 'h', type: 'float32', shape: [1, 4] },
    { name: 'wave', type: 'float32', shape: [1, 6] },
  ],
  outputs: [
    { name: 'y', type: 'float32', shape: ['n', 3, 1, 1] },
    { name: 'hn', type: 'float32', shape: [1, 4] },
    { name: 'longer', type: 'float32', shape: [1, 10] },
  ],
  nodes: [
    { type: 'GlobalAveragePool', inputs: ['x'], outputs: ['y'] },
    { type: 'Identity', inputs: ['h'], outputs: ['hn'] },
    { type: 'Concat', inputs: ['h', 'wave'], outputs: ['longer'], attributes: { axis: 1 } },
  ],
}

const addWith = (flags: BindingFlags) =>
  addIn(freshFolder({ 'm.onnx': GRAPH }), 'm.onnx', { wishes: parseBindingFlags(flags) })

test.each<[string, BindingFlags, RegExp]>([
  [
    'two means of three channels',
    { image: ['x'], mean: '1,2' },
    /inputs\.x: `mean` must have 1 or 3/,
  ],
  [
    'another size',
    { image: ['x'], size: '9x9' },
    /inputs\.x: its layout has the shape \[1, 3, 9, 9\]/,
  ],
  [
    'other channels',
    { image: ['x'], channels: 'gray' },
    /inputs\.x: its layout has the shape \[1, 1,/,
  ],
  [
    'a multiple of a fixed side',
    { image: ['x'], 'multiple-of': '32' },
    /inputs\.x: `multipleOf` is/,
  ],
  [
    'a window of another length',
    { audio: ['wave=16000'], window: '7' },
    /inputs\.wave: takes 6 samples, not 7/,
  ],
  [
    'a state of another length',
    { state: ['h=longer'] },
    /--state h=longer: longer has the shape \[1, 10\], but h takes \[1, 4\]/,
  ],
])('refuses %s', async (_, flags, says) => {
  const adding = addWith(flags)
  await expect(adding).rejects.toThrow(says)
  await expect(adding).rejects.toMatchObject({ kind: 'invalid_request' })
})

test('adds what fits', async () => {
  const { entry } = await addWith({
    image: ['x'],
    mean: '1,2,3',
    audio: ['wave=16000'],
    window: '5',
    context: '1',
    state: ['h=hn'],
  })
  expect(entry).toMatchObject({ states: [{ input: 'h', output: 'hn' }] })
})
