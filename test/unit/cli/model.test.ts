/** What is read of ONNX files, and what is said of files that are none. */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readModel as read } from '../../../src/draft/model.ts'
import { onnxFile, onnxGraph } from '../../support/onnx.ts'
import { openRoot } from '../../../src/cli/add/model-root.ts'
import { openFolder } from '../../../src/cli/onnx/disk-folder.ts'
import { freshFolder, MIXED, passing, ROOT } from './graphs.ts'

const readModel = (path: string) => read(openFolder(openRoot(dirname(path))), basename(path))

test('reads inputs, outputs, shapes and where weights are', async () => {
  const path = join(freshFolder({ 'm.onnx': MIXED }), 'm.onnx')
  const model = await readModel(path)
  expect(model.inputs.map(({ name, type, shape }) => [name, type, shape])).toEqual([
    ['x', 'float32', ['batch', 4]],
    ['ids', 'int64', ['n']],
    ['flag', 'bool', []],
    ['words.0', 'string', ['k']],
    ['free', 'uint8', null],
  ])
  expect(model.outputs.map(({ name }) => name)).toEqual(['y', 'not flag', 'words', 'same'])
  expect(model).toMatchObject({
    irVersion: 8,
    description: 'Adds and passes on.',
    externalData: ['weights/w.bin'],
    usesHalves: false,
  })
  expect(model.opsets).toEqual(new Map([['', 17]]))
})

test('does not read weights to get behind them', async () => {
  const size = 3 * 2 ** 20 + 5
  const weights = {
    name: 'w',
    type: 'uint8',
    shape: [size],
    data: new Uint8Array(size).fill(0xff),
  } as const
  const path = join(freshFolder({ 'm.onnx': { ...passing({}), weights: [weights] } }), 'm.onnx')
  expect((await readModel(path)).outputs).toMatchObject([{ name: 'y', shape: ['n'] }])
})

test('finds weights and halves inside of branches', async () => {
  const branch = (location: string) =>
    onnxGraph({
      inputs: [],
      outputs: [{ name: 'b', type: 'float16', shape: [] }],
      nodes: [{ type: 'Identity', inputs: ['w'], outputs: ['b'] }],
      weights: [{ name: 'w', type: 'float16', shape: [], data: { location } }],
    })
  const graphs = { then_branch: branch('then.bin'), else_branch: branch('else.bin') }
  const graph = {
    ...passing({ type: 'bool', shape: [] }),
    nodes: [{ type: 'If', inputs: ['x'], outputs: ['y'], graphs }],
  }
  const model = await readModel(join(freshFolder({ 'm.onnx': graph }), 'm.onnx'))
  expect(model).toMatchObject({ externalData: ['then.bin', 'else.bin'], usesHalves: true })
})

test.each([
  [
    'what is cast to them',
    { nodes: [{ type: 'Cast', inputs: ['x'], outputs: ['y'], attributes: { to: 10 } }] },
    true,
  ],
  ['inputs of them', passing({ type: 'float16' }), true],
  ['none', passing({}), false],
])('knows 16-bit floats by %s', async (_, graph, usesHalves) => {
  const path = join(freshFolder({ 'm.onnx': { ...passing({}), ...graph } }), 'm.onnx')
  expect(await readModel(path)).toMatchObject({ usesHalves })
})

test('a length of 0 is free', async () => {
  const path = join(freshFolder({ 'm.onnx': passing({ shape: [0, 3] }) }), 'm.onnx')
  expect((await readModel(path)).inputs[0]?.shape).toEqual([null, 3])
})

test('reads a model that is in the package', async () => {
  const model = await readModel(join(ROOT, 'demo/models/guide/onnx/model.onnx'))
  expect(model.inputs.map(({ name }) => name)).toContain('past_key_values.0.key')
  expect(model.usesHalves).toBe(true)
})

const GUIDE = readFileSync(join(ROOT, 'demo/models/guide/onnx/model.onnx'))

test.each<[string, Uint8Array | string, RegExp]>([
  ['empty', '', /is empty/],
  ['text', 'hello, this is no model\n', /is not an ONNX model/],
  ['zip', 'PK\x03\x04abc', /zip archive/],
  ['pickle', Uint8Array.of(0x80, 2, 0x7d), /pickled/],
  ['gguf', 'GGUF\x03', /GGUF/],
  ['pointer', 'version https://git-lfs.github.com/spec/v1\noid sha256:0', /git lfs pull/],
  ['page', '<!doctype html><p>Not found', /web page/],
  ['safetensors', new Uint8Array([8, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x22, 0x61]), /safetensors/],
  ['cut', GUIDE.subarray(0, 100_000), /ends in the middle/],
  ['protobuf that is another', Uint8Array.of(8, 1, 18, 1, 65), /is not an ONNX model/],
])('says what a file is instead: %s', async (_, content, says) => {
  const path = join(freshFolder({ 'm.onnx': content }), 'm.onnx')
  await expect(readModel(path)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(says),
  })
})

test('never hangs or crashes on damaged bytes', async () => {
  const path = join(freshFolder(), 'm.onnx')
  const good = onnxFile(MIXED)
  const outcomes: string[] = []
  let state = 7
  for (let round = 0; round < 100; round++) {
    const bytes = Uint8Array.from(good)
    for (let hit = 0; hit < 3; hit++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      bytes[state % bytes.length] = state >>> 24
    }
    writeFileSync(path, bytes)
    outcomes.push(
      await readModel(path).then(
        () => 'read',
        (error: { kind?: string }) => String(error.kind),
      ),
    )
  }
  expect(new Set(outcomes)).toEqual(new Set(['read', 'invalid_request']))
})
