/** Notes on inputs that may be states or take sound, for the tensors of published models. */
import type { InferenceSession } from 'onnxruntime-web'
import { expect, test } from 'vitest'
import { suggestOptions } from '../../../src/cli/onnx/test-plan.ts'

type Tensors = Readonly<Record<string, readonly number[]>>

const toMetadata = (tensors: Tensors): InferenceSession.ValueMetadata[] =>
  Object.entries(tensors).map(([name, shape]) => ({
    name,
    isTensor: true,
    type: name === 'sr' ? 'int64' : 'float32',
    shape,
  }))

function suggest(inputs: Tensors, outputs: Tensors, hasStates = false): string[] {
  const model = {
    tensors: { inputs: toMetadata(inputs), outputs: toMetadata(outputs) },
    shapes: new Map(Object.entries(inputs)),
    outputs: new Map(Object.entries(outputs)),
  }
  return suggestOptions(model, {}, hasStates)
}

const [mix, cache, frame, block] = [
  [1, 257, 1, 2],
  [2, 1, 33, 16],
  [1, 64],
  [1, 2, 128, 2],
] as const
const SILERO: [Tensors, Tensors] = [
  { input: [1, 512], sr: [1], h: [2, 1, 64], c: [2, 1, 64] },
  { output: [1, 1], hn: [2, 1, 64], cn: [2, 1, 64] },
]

test.each<[string, [Tensors, Tensors, boolean?], string[]]>([
  [
    'a sample rate and names: Silero VAD v4',
    SILERO,
    ['audio input=16000', 'state h=hn', 'state c=cn'],
  ],
  ['a sample rate beside known states', [...SILERO, true], ['audio input=16000']],
  [
    'names among tensors of one shape: GTCRN',
    [
      { mix, tra_cache: cache, in_a: cache },
      { enh: mix, tra_cache_out: cache, out_a: cache },
    ],
    ['state tra_cache=tra_cache_out', 'state in_a=out_a'],
  ],
  [
    'numbered names: TEN VAD',
    [
      { input_1: [1, 3, 41], input_2: frame, input_6: frame },
      { output_1: [1, 1, 1], output_2: frame, output_6: frame },
    ],
    ['state input_2=output_2', 'state input_6=output_6'],
  ],
  [
    'the shape without such names: DTLN',
    [
      { input_4: [1, 1, 512], input_5: block },
      { conv1d_3: [1, 1, 512], tf_op_layer_stack_5: block },
    ],
    ['state input_5=tf_op_layer_stack_5'],
  ],
  ['the name of sound', [{ waveform: [1, 16_000] }, { y: [1, 521] }], ['audio waveform=16000']],
  ['not a spectrogram', [{ audio: [1, 80, 3000] }, { y: [1, 10] }], []],
])('States and sound are found by %s', (_, model, options) => {
  const found = suggest(...model).flatMap(
    (note) => note.match(/--(state|audio) \S+=[^\s,.]+/g) ?? [],
  )
  expect(found).toEqual(options.map((option) => `--${option}`))
})

const vector = [1, 8]
test.each<[string, Tensors, Tensors]>([
  ['a filter', { x: vector }, { y: vector }],
  ['two towers', { left: vector, right: vector }, { one: vector, other: vector }],
  ['a graph that changes all inputs', { x: vector, y: [3] }, { x_out: vector, y_out: [3] }],
  ['a mask', { x: vector, mask: [1, 4] }, { y: [1, 2], best: [1, 4], next: [1, 4] }],
])('A model without a state gets no note: %s', (_, inputs, outputs) => {
  expect(suggest(inputs, outputs)).toEqual([])
})
