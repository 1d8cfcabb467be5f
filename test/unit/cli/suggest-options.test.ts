/** Notes on inputs that may be states or take sound, for the tensors of models that others made. */
import type { InferenceSession } from 'onnxruntime-web'
import { expect, test } from 'vitest'
import { suggestOptions } from '../../../src/cli/onnx/suggest-options.ts'

type Tensors = Readonly<Record<string, readonly number[]>>

const toMetadata = (tensors: Tensors): InferenceSession.ValueMetadata[] =>
  Object.entries(tensors).map(([name, shape]) => ({
    name,
    isTensor: true,
    type: name === 'sr' ? 'int64' : 'float32',
    shape,
  }))

const suggest = (inputs: Tensors, outputs: Tensors, hasStates = false): string[] =>
  suggestOptions(
    {
      tensors: { inputs: toMetadata(inputs), outputs: toMetadata(outputs) },
      shapes: new Map(Object.entries(inputs)),
      outputs: new Map(Object.entries(outputs)),
    },
    {},
    hasStates,
  )

/** Returns the options that the notes name. */
const optionsFor = (...model: Parameters<typeof suggest>): string[] =>
  suggest(...model).flatMap((note) => note.match(/--(state|audio) \S+=[^\s,.]+/g) ?? [])

test('a sample rate tells sound, and names tell states: Silero VAD v4', () => {
  const inputs = { input: [1, 512], sr: [1], h: [2, 1, 64], c: [2, 1, 64] }
  const outputs = { output: [1, 1], hn: [2, 1, 64], cn: [2, 1, 64] }
  expect(optionsFor(inputs, outputs)).toEqual([
    '--audio input=16000',
    '--state h=hn',
    '--state c=cn',
  ])
  expect(optionsFor(inputs, outputs, true)).toEqual(['--audio input=16000'])
})

test('names tell which tensors of one shape are states: GTCRN, TEN VAD', () => {
  const [mix, cache] = [
    [1, 257, 1, 2],
    [2, 1, 33, 16],
  ]
  expect(
    optionsFor(
      { mix, tra_cache: cache, in_a: cache },
      { enh: mix, tra_cache_out: cache, out_a: cache },
    ),
  ).toEqual(['--state tra_cache=tra_cache_out', '--state in_a=out_a'])
  const state = [1, 64]
  expect(
    optionsFor(
      { input_1: [1, 3, 41], input_2: state, input_6: state },
      { output_1: [1, 1, 1], output_2: state, output_6: state },
    ),
  ).toEqual(['--state input_2=output_2', '--state input_6=output_6'])
})

test('without such names, the shape tells: DTLN', () => {
  const state = [1, 2, 128, 2]
  expect(
    optionsFor(
      { input_4: [1, 1, 512], input_5: state },
      { conv1d_3: [1, 1, 512], tf_op_layer_stack_5: state },
    ),
  ).toEqual(['--state input_5=tf_op_layer_stack_5'])
})

test('the name of sound is enough, but not for a spectrogram', () => {
  expect(optionsFor({ waveform: [1, 16_000] }, { y: [1, 521] })).toEqual(['--audio waveform=16000'])
  expect(optionsFor({ audio: [1, 80, 3000] }, { y: [1, 10] })).toEqual([])
})

test('models without a state get no note', () => {
  const vector = [1, 8]
  // A filter, two towers, and a graph that changes all of its inputs.
  expect(suggest({ x: vector }, { y: vector })).toEqual([])
  expect(suggest({ left: vector, right: vector }, { one: vector, other: vector })).toEqual([])
  expect(suggest({ x: vector, y: [3] }, { x_out: vector, y_out: [3] })).toEqual([])
  expect(suggest({ x: vector, mask: [1, 4] }, { y: [1, 2], best: [1, 4], next: [1, 4] })).toEqual(
    [],
  )
})
