/** The facts that are read from ONNX files, errors for other files, and models too large to run. */
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readModel as read } from '../../../src/draft/model.ts'
import { type Graph, onnxFile, onnxGraph } from '../../support/onnx.ts'
import { createChance } from '../../support/random.ts'
import { openFolder, openRoot } from '../../../src/cli/add/model-root.ts'
import { testGraph } from '../../../src/cli/onnx/test-plan.ts'
import { stripWeights } from '../../../src/cli/onnx/strip-weights.ts'
import { addIn, freshFolder, MIXED, passing, ROOT, toPort, weight } from './graphs.ts'

const { signal } = new AbortController()

const readModel = (path: string) => read(openFolder(openRoot(dirname(path))), basename(path))

/** Writes a file and reads it as a model. */
const readFile = (content: Graph | Uint8Array | string) =>
  readModel(join(freshFolder({ 'm.onnx': content }), 'm.onnx'))

const GUIDE = readFileSync(join(ROOT, 'demo/models/guide/onnx/model.onnx'))

test('Inputs, outputs, shapes and the files of weights are read', async () => {
  const model = await readFile(MIXED)
  const inputs = model.inputs.map(({ name, type, shape }) => ({ name, type, shape }))
  // The weight `w` is no input.
  expect(inputs).toEqual(MIXED.inputs.slice(0, -1))
  expect(model.outputs.map(({ name }) => name)).toEqual(['y', 'not flag', 'words', 'same'])
  expect(model).toMatchObject({
    irVersion: 8,
    description: 'Adds and passes on.',
    externalData: ['weights/w.bin'],
    usesHalves: false,
  })
  expect(model.opsets).toEqual(new Map([['', 17]]))
})

test('Weights are skipped', async () => {
  const size = 3 * 2 ** 20 + 5
  const weights = [weight('w', [size], new Uint8Array(size).fill(0xff))]
  const { outputs } = await readFile({ ...passing({}), weights })
  expect(outputs).toMatchObject([{ name: 'y', shape: ['n'] }])
})

test('Weights and halves in branches are found', async () => {
  const branch = (location: string) =>
    onnxGraph({
      inputs: [],
      outputs: [{ name: 'b', type: 'float16', shape: [] }],
      nodes: [{ type: 'Identity', inputs: ['w'], outputs: ['b'] }],
      weights: [weight('w', [], { location }, 'float16')],
    })
  const graphs = { then_branch: branch('then.bin'), else_branch: branch('else.bin') }
  const nodes = [{ type: 'If', inputs: ['x'], outputs: ['y'], graphs }]
  const model = await readFile({ ...passing({ type: 'bool', shape: [] }), nodes })
  expect(model).toMatchObject({ externalData: ['then.bin', 'else.bin'], usesHalves: true })
})

const toHalves = [{ type: 'Cast', inputs: ['x'], outputs: ['y'], attributes: { to: 10 } }]
test.each<[string, Graph, boolean]>([
  ['a cast to halves', { ...passing({}), nodes: toHalves }, true],
  ['inputs of halves', passing({ type: 'float16' }), true],
  ['no halves', passing({}), false],
])('16-bit floats are found: %s', async (_, graph, usesHalves) => {
  expect(await readFile(graph)).toMatchObject({ usesHalves })
})

test('A length of 0 is free', async () => {
  expect((await readFile(passing({ shape: [0, 3] }))).inputs[0]?.shape).toEqual([null, 3])
})

test('A model of the package is read', async () => {
  const model = await readFile(GUIDE)
  expect(model.inputs.map(({ name }) => name)).toContain('past_key_values.0.key')
  expect(model.usesHalves).toBe(true)
})

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
])('Another file is named: %s', async (_, content, says) => {
  await expect(readFile(content)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(says),
  })
})

test('Damaged bytes neither hang nor crash it', async () => {
  const path = join(freshFolder(), 'm.onnx')
  const good = onnxFile(MIXED)
  const chance = createChance(7)
  const outcomes = new Set<unknown>()
  for (let round = 0; round < 100; round++) {
    const bytes = Uint8Array.from(good)
    for (let hit = 0; hit < 3; hit++) bytes[chance.below(bytes.length)] = chance.below(256)
    writeFileSync(path, bytes)
    const reading = readModel(path).then(() => 'read')
    outcomes.add(await reading.catch((error: { kind?: string }) => error.kind))
  }
  expect(outcomes).toEqual(new Set(['read', 'invalid_request']))
})

const SIDE = 64
const runtime = join(ROOT, 'node_modules/onnxruntime-web/dist')
const WEIGHT = weight('w', [SIDE, SIDE], new Uint8Array(4 * SIDE * SIDE), 'float32')

const product = (operator = 'Relu', weights = [WEIGHT]): Graph => ({
  inputs: [toPort(`x float32 n,${SIDE}`)],
  outputs: [toPort(`y float32 n,${SIDE}`)],
  nodes: [
    { type: 'MatMul', inputs: ['x', 'w'], outputs: ['xw'] },
    { type: operator, inputs: ['xw'], outputs: ['y'] },
  ],
  weights,
})

async function strip(graph: Graph, maxBytes = 2 ** 20, until = signal) {
  const file = await openFolder(openRoot(freshFolder({ 'm.onnx': graph }))).open('m.onnx')
  try {
    return await stripWeights(file, maxBytes, until)
  } finally {
    await file.close()
  }
}

test('A graph opens without its weights, which may be inputs as well', async () => {
  const inputs = [...product().inputs, toPort(`w float32 ${SIDE},${SIDE}`)]
  for (const graph of [product(), { ...product(), inputs, ir: 3 }]) {
    const stripped = await strip(graph)
    expect(stripped?.length).toBeLessThan(300)
    expect(await testGraph(stripped!, { name: 'm.onnx', runtime })).toBeNull()
  }
})

test('A graph that is too large without its weights is not opened', async () => {
  expect(await strip(product(), 16)).toBeNull()
})

test('An interruption ends the removal of weights', async () => {
  await expect(strip(product(), 2 ** 20, AbortSignal.abort())).rejects.toThrow('aborted')
})

test('A missing operator is named before a large model is copied', async () => {
  const data = { location: 'weights.bin', offset: 0, length: 4 * SIDE * SIDE }
  const graph = product('Unheard', [{ ...WEIGHT, data }])
  const folder = freshFolder({ 'm.onnx': graph, 'weights.bin': '' })
  // A sparse file, which takes no space.
  truncateSync(join(folder, 'weights.bin'), 600 * 2 ** 20)
  const steps: string[] = []
  const adding = addIn(folder, 'm.onnx', { onStep: (step) => steps.push(step) })
  await expect(adding).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(adding).rejects.toThrow('No Op registered for Unheard')
  expect(steps).not.toContain('Copying')
  expect(existsSync(join(folder, 'public/inorigin/@me'))).toBe(false)
})
