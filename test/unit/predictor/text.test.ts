/** Texts to tensors of tokens, with a tokenizer that makes a token of each word's length. */
import { describe, expect, test } from 'vitest'
import type { TextLayout } from '../../../src/catalog/schema.ts'
import type { ElementType } from '../../../src/values/elements.ts'
import { encodeText } from '../../../src/predictor/text.ts'
import { parseInput } from '../../../src/predictor/parse-inputs.ts'
import type { RawTensor } from '../../../src/predictor/tensor.ts'
import { encodeInput } from '../../../src/predictor/tensor-codec.ts'

const layout: TextLayout = { tokenizer: 'tokenizer.json', mask: 'mask', types: 'types', most: 3 }
const tokenize = (text: string): number[] => text.split(' ').map((word) => word.length)

function encode(
  texts: readonly string[],
  changes: Partial<TextLayout> = {},
  type: ElementType = 'int64',
): Record<string, RawTensor> {
  const spec = { layout: { ...layout, ...changes }, tokenize }
  return Object.fromEntries(encodeText(texts, 'ids', type, spec, 'inputs.text'))
}

test('rows are filled up to the longest, and the mask tells how far', () => {
  const shape = [2, 3]
  expect(encode(['a bb', 'ccc a bb'])).toEqual({
    ids: { type: 'int64', data: new BigInt64Array([1n, 2n, 0n, 3n, 1n, 2n]), shape },
    mask: { type: 'int64', data: new BigInt64Array([1n, 1n, 0n, 1n, 1n, 1n]), shape },
    types: { type: 'int64', data: new BigInt64Array(6), shape },
  })
})

test('the tensors are of the type that the model takes', () => {
  expect(encode(['a bb'], { mask: undefined, types: undefined }, 'int32')).toEqual({
    ids: { type: 'int32', data: new Int32Array([1, 2]), shape: [1, 2] },
  })
})

describe('refused', () => {
  test.each<[string[], Partial<TextLayout>, string]>([
    [[], {}, 'inputs.text: must have at least one text.'],
    [['a a a a'], {}, 'inputs.text: the text has 4 tokens, but the maximum is 3. Shorten it.'],
    [
      ['a', 'a a a a'],
      {},
      'inputs.text[1]: the text has 4 tokens, but the maximum is 3. Shorten it.',
    ],
    [
      Array<string>(2 ** 17)
        .fill('a')
        .concat('a a a'),
      {},
      'inputs.text: 131073 texts of up to 3 tokens are more than 262144 tokens. Send fewer texts at once.',
    ],
    [
      ['a', 'a a'],
      { mask: undefined },
      'inputs.text: the model takes texts of equal length only; send them one by one.',
    ],
  ])('%#', (texts, changes, message) => {
    expect(() => encode(texts, changes)).toThrow(
      expect.objectContaining({ kind: 'invalid_request', message }),
    )
  })
})

describe('what a caller gives', () => {
  const spec = { type: 'int64', shape: [null, null], text: { layout, tokenize } } as const
  const shapeOf = async (type: 'string' | 'list', value: unknown): Promise<unknown> => {
    const checked = parseInput({ name: 'text', type }, value, 'inputs.text')
    return (await encodeInput(checked, 'ids', spec, 'inputs.text')).get('ids')?.shape
  }

  test.each<['string' | 'list', unknown, number[]]>([
    ['string', 'a bb', [1, 2]],
    ['string', '', [1, 1]],
    ['string', ['a bb', 'c'], [2, 2]],
    ['list', ['a', 'b', 'c'], [3, 1]],
  ])('%s %j', async (type, value, shape) => {
    expect(await shapeOf(type, value)).toEqual(shape)
  })

  test('nested lists are refused', async () => {
    const message = 'inputs.text: must be one text, or a list of them.'
    await expect(shapeOf('string', [['a'], ['b']])).rejects.toMatchObject({ message })
  })

  test('a list of something else is refused at its place', async () => {
    const message = 'inputs.text[1]: must be text, not 5.'
    await expect(shapeOf('list', ['a', 5])).rejects.toMatchObject({ message })
  })
})
