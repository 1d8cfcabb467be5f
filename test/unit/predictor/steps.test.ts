import { describe, expect, test } from 'vitest'
import type { Step } from '../../../src/catalog/schema.ts'
import { createTextTokenizer } from '../../../src/predictor/text.ts'
import { WORDS } from '../../support/word-pieces.ts'
import { applySteps, openSteps } from '../../../src/predictor/steps.ts'
import { decodeOutput } from '../../../src/predictor/tensor-codec.ts'
import type { RawTensor } from '../../../src/predictor/tensor.ts'
import type { ParameterType } from '../../../src/types/index.ts'

const fail = (why: string): never => {
  throw new Error(why)
}

const source = { file: 'labels.txt' }
const labels = new Map([[JSON.stringify(source), ['a', 'b', 'c']]])

const floats = (data: number[], shape: number[]): RawTensor => ({
  type: 'float32',
  data: Float32Array.from(data),
  shape,
})

const softmax = { step: 'softmax' } as const

function decode(steps: Step[], type: ParameterType, tensor: RawTensor): unknown {
  const opened = openSteps({ tensor: 'y', steps }, type, labels, fail)
  return decodeOutput({ name: 'y', type }, tensor, { steps: opened, fail })
}

test('Softmax and sigmoid give probabilities', () => {
  const scores = floats([0, Math.log(3), 1000, 1000], [2, 2])
  const { data, shape } = decode([softmax], 'float32', scores) as RawTensor
  expect(shape).toEqual([2, 2])
  expect([...data]).toEqual([0.25, 0.75, 0.5, 0.5].map((each) => expect.closeTo(each, 6)))
  const each = decode([{ step: 'sigmoid' }], 'float32', floats([0, 1000, -1000], [3]))
  expect(each).toEqual({ data: Float32Array.of(0.5, 1, 0), shape: [3] })
})

describe('Classes', () => {
  const topK = { step: 'top-k', count: 2, labels: source } as const

  test('are named, the best first, after a softmax', () => {
    const scores = floats([0, Math.log(2), 0], [1, 3])
    expect(decode([softmax, topK], 'list', scores)).toEqual([
      { label: 'b', index: 1, score: expect.closeTo(0.5, 6) },
      { label: 'a', index: 0, score: expect.closeTo(0.25, 6) },
    ])
  })

  test('below the threshold are left out, and a batch has a list for each row', () => {
    const scores = floats([0.5, 0.25, 0.125, 0, 0, 0], [2, 3])
    expect(decode([{ ...topK, threshold: 0.25 }], 'list', scores)).toEqual([
      [
        { label: 'a', index: 0, score: 0.5 },
        { label: 'b', index: 1, score: 0.25 },
      ],
      [],
    ])
  })

  test('without labels have their index, also in half precision', () => {
    const halves = { type: 'float16', data: Uint16Array.of(0x3800, 0x3c00), shape: [2] } as const
    const [best] = decode([{ step: 'top-k', count: 1 }], 'list', halves) as unknown[]
    expect(best).toEqual({ label: '1', index: 1, score: 1 })
  })

  test('without a label are refused', () => {
    expect(() => decode([topK], 'list', floats([1, 2, 3, 4], [4]))).toThrow(
      'has 4 classes, but there are 3 labels.',
    )
  })
})

describe('Text', () => {
  /** Scores of one step, of which one class is chosen with that score. */
  const chosen = (classes: number, at: number, score = 1): number[] =>
    Array.from({ length: classes }, (_, index) => (index === at ? score : 0))
  const ctc = { step: 'ctc', labels: source } as const

  test('has no blanks and repetitions', () => {
    const steps = [1, 1, 0, 1, 2, 2, 0].flatMap((at) => chosen(4, at))
    expect(decode([ctc], 'string', floats(steps, [1, 7, 4]))).toBe('aab')
  })

  test('has a last class for spaces, and a blank in another place', () => {
    const withSpace = [1, 4, 2].flatMap((at) => chosen(5, at))
    expect(decode([{ ...ctc, space: true }], 'string', floats(withSpace, [3, 5]))).toBe('a b')
    const blankLast = [0, 3, 1].flatMap((at) => chosen(4, at))
    expect(decode([{ ...ctc, blank: 3 }], 'string', floats(blankLast, [3, 4]))).toBe('ab')
  })

  test('of a batch is a tensor, or a list with scores', () => {
    const steps = [...chosen(4, 1, 0.5), ...chosen(4, 2, 0.25), ...chosen(4, 0), ...chosen(4, 0)]
    const tensor = floats(steps, [2, 2, 4])
    expect(decode([ctc], 'string', tensor)).toEqual({ data: ['ab', ''], shape: [2] })
    expect(decode([ctc], 'list', tensor)).toEqual([
      { text: 'ab', score: 0.375 },
      { text: '', score: 0 },
    ])
  })

  test('has spaces for a delimiter, but none at its ends', () => {
    const steps = [2, 1, 0, 2, 2, 0, 2, 3, 2].flatMap((at) => chosen(4, at))
    const step: Step = { ...ctc, delimiter: 'b' }
    expect(decode([step], 'string', floats(steps, [1, 9, 4]))).toBe('a  c')
  })

  test('of another number of classes is refused', () => {
    expect(() => decode([ctc], 'string', floats(chosen(5, 1), [1, 5]))).toThrow(
      'has 5 classes, but there are 3 characters and a blank.',
    )
  })
})

test.each<[Step[], ParameterType, string]>([
  [
    [{ step: 'top-k', count: 1 }],
    'float32',
    'is declared float32, but the step top-k returns list.',
  ],
  [[{ step: 'mask' }, softmax], 'image', 'the step mask must be the last.'],
  [[softmax], 'int64', 'is declared int64, but the step softmax returns float32.'],
  [[{ step: 'ctc', labels: { metadata: 'none' } }], 'string', 'its labels are missing.'],
])('%j for %s is refused', (steps, type, why) => {
  expect(() => openSteps({ tensor: 'y', steps }, type, labels, fail)).toThrow(why)
})

test('A mask of no pixels is refused', () => {
  expect(() =>
    applySteps(floats([], [0, 4]), [{ step: { step: 'mask' }, labels: [] }], fail),
  ).toThrow('has the shape [0, 4], which is no mask.')
})

describe('Vectors of tokens', () => {
  /** Two texts of three tokens, the second of which has one of padding. */
  const states = floats([1, 2, 3, 4, 5, 9, 8, 0, 2, 6, 100, 100], [2, 3, 2])
  const rows = [3, 2].map((length) => ({ ids: Array<number>(length).fill(1), types: [] }))
  const tokenizer = createTextTokenizer(WORDS, {})
  const facts = { texts: { rows, texts: [], pairs: null, tokenizer } }

  test.each<['mean' | 'first' | 'last' | 'max' | 'mean-sqrt', number[]]>([
    ['mean', [3, 5, 5, 3]],
    ['first', [1, 2, 8, 0]],
    ['last', [5, 9, 2, 6]],
    ['max', [5, 9, 8, 6]],
    ['mean-sqrt', [9 / Math.sqrt(3), 15 / Math.sqrt(3), 10 / Math.SQRT2, 6 / Math.SQRT2]],
  ])('become one of each text by %s, without padding', (by, expected) => {
    const result = applySteps(states, [{ step: { step: 'pool', by }, labels: [] }], fail, facts)
    const { tensor } = result as { tensor: RawTensor }
    expect(tensor.shape).toEqual([2, 2])
    expect([...(tensor.data as Float32Array)]).toEqual(
      expected.map((one) => expect.closeTo(one, 5)),
    )
  })

  test('are scaled to the length 1, and zeros stay', () => {
    const result = decode([{ step: 'normalize' }], 'float32', floats([3, 4, 0, 0], [2, 2]))
    const data = (result as RawTensor).data as Float32Array
    expect([...data]).toEqual([0.6, 0.8, 0, 0].map((one) => expect.closeTo(one, 6)))
  })

  test('that are none are refused', () => {
    const pool = { step: { step: 'pool', by: 'mean' }, labels: [] } as const
    expect(() => applySteps(floats([1, 2], [1, 2]), [pool], fail)).toThrow(
      'no vector for each token',
    )
  })
})

test('An input changes the number of classes', () => {
  const step = { step: 'top-k', count: 1, countInput: 'top_k' } as const
  const settings = new Map([['top_k', 2]])
  const result = applySteps(floats([1, 3, 2], [1, 3]), [{ step, labels: [] }], fail, { settings })
  expect(result).toMatchObject({ rows: [[{ index: 1 }, { index: 2 }]] })
})

describe('Objects of an image', () => {
  const SCORES = floats([0.6, 0.3, 0.1, 0.2, 0.7, 0.05, 0.1, 0.1, 0.8], [1, 3, 3])
  const BOXES = floats([0.5, 0.5, 0.5, 0.5, 0.1, 0.2, 0.4, 0.4, 0, 0, 0, 0], [1, 3, 4])
  const find = (changes: object, settings: Record<string, number> = {}) => {
    const step: Step = { step: 'objects', boxes: 'boxes', thresholdInput: 'threshold', ...changes }
    const open = { step, labels: ['cat', 'dog', 'bird'] }
    return applySteps(SCORES, [open], fail, {
      settings: new Map(Object.entries(settings)),
      others: new Map([['boxes', BOXES]]),
      images: [{ size: [201, 100] }],
    })
  }
  const dog = {
    label: 'dog',
    index: 1,
    score: expect.closeTo(0.7, 5),
    box: { xmin: -20, ymin: 0, xmax: 60, ymax: 40 },
  }
  const cat = {
    label: 'cat',
    index: 0,
    score: expect.closeTo(0.6, 5),
    box: { xmin: 50, ymin: 25, xmax: 150, ymax: 75 },
  }

  test('have boxes in its pixels, the highest score first, without those of no object', () => {
    expect(find({ background: true })).toEqual({ step: 'objects', rows: [[dog, cat]] })
  })

  test('are the best pairs of a box and a class without a class for no object', () => {
    const { rows } = find({}, { threshold: 0.25 }) as { rows: { label: string }[][] }
    expect(rows[0]?.map(({ label }) => label)).toEqual(['bird', 'dog', 'cat'])
    expect(find({ count: 1, threshold: 0.65 })).toMatchObject({ rows: [[{ label: 'bird' }]] })
  })

  test('of more classes than labels are refused', () => {
    const step: Step = { step: 'objects', boxes: 'boxes', labels: { names: ['cat'] } }
    const others = new Map([['boxes', BOXES]])
    expect(() => applySteps(SCORES, [{ step, labels: ['cat'] }], fail, { others })).toThrow(
      'has 3 classes, but there are 1 labels.',
    )
  })
})

describe('Planes', () => {
  const resize = { step: { step: 'resize', by: 'bilinear' }, labels: [] } as const

  test('get the size of the image, and keep their own without one', () => {
    const planes = floats([0, 1, 2, 3], [1, 2, 1, 2])
    const images = [{ size: [4, 1] as const }]
    expect(applySteps(planes, [resize], fail, { images })).toEqual({
      tensor: floats([0, 0.25, 0.75, 1, 2, 2.25, 2.75, 3], [1, 2, 1, 4]),
    })
    expect(applySteps(planes, [resize], fail)).toEqual({ tensor: planes })
  })

  test('of images of several sizes are refused', () => {
    const images = [{ size: [4, 1] as const }, { size: [2, 2] as const }]
    expect(() => applySteps(floats([0, 1], [2, 1, 1]), [resize], fail, { images })).toThrow(
      'has images of several sizes. Send them one by one.',
    )
  })
})

describe('Labels of a prediction', () => {
  const tokenizer = createTextTokenizer(WORDS, {})
  const candidates = ['a', 'b', 'c']
  const rank = (
    step: Step,
    scores: number[],
    shape: number[],
    settings: Record<string, number> = {},
    names: string[] | null = candidates,
  ) =>
    applySteps(floats(scores, shape), [{ step, labels: [] }], fail, {
      settings: new Map(Object.entries(settings)),
      texts: { rows: [], texts: [], pairs: null, tokenizer, ...(names && { candidates: names }) },
    })
  const LOGITS = [0, 1, 1, 2, 0, 3, 0, 0, 2]
  const of = (...scores: number[]) => scores.map((score) => expect.closeTo(score, 5))
  const share = (score: number) => Math.exp(score) / (Math.exp(1) + Math.exp(3) + Math.exp(2))
  const odds = (score: number) => 1 / (1 + Math.exp(-score))

  test.each([
    ['share one probability', {}, ['b', 'c', 'a'], of(share(3), share(2), share(1))],
    // The scores against the class 0.
    ['have their own', { several: 1 }, ['c', 'a', 'b'], of(odds(2), odds(1), odds(1))],
  ])('of pairs %s', (_, settings, names, scores) => {
    const step: Step = { step: 'zero-shot', entailment: 2, severalInput: 'several' }
    const result = rank(step, LOGITS, [3, 3], settings)
    const [row = []] = 'rows' in result ? (result.rows as { label: string; score: number }[][]) : []
    expect(row.map(({ label }) => label)).toEqual(names)
    expect(row.map(({ score }) => score)).toEqual(scores)
  })

  test('of an image have the scores of its row', () => {
    const result = rank({ step: 'zero-shot' }, [0.2, 0.7, 0.1], [1, 3])
    expect(result).toMatchObject({ rows: [[{ label: 'b' }, { label: 'a' }, { label: 'c' }]] })
    expect(() => rank({ step: 'zero-shot' }, [1, 0], [1, 2])).toThrow('but there are 3 labels.')
  })

  test('may be missing only where other steps follow', () => {
    expect(rank({ step: 'zero-shot', entailment: 2 }, LOGITS, [3, 3], {}, null)).toHaveProperty(
      'tensor',
    )
    expect(() => rank({ step: 'zero-shot' }, [1], [1, 1], {}, null)).toThrow('has labels.')
    const step: Step = { step: 'zero-shot', entailment: 2 }
    const steps: Step[] = [step, softmax, { step: 'top-k', count: 1 }]
    expect(openSteps({ tensor: 'y', steps }, 'list', labels, fail)).toHaveLength(3)
    const last: Step[] = [{ step: 'zero-shot' }, softmax]
    expect(() => openSteps({ tensor: 'y', steps: last }, 'list', labels, fail)).toThrow(
      'the step zero-shot must be the last.',
    )
  })
})
