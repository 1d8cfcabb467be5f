/** Values to tensors and back. Texts are tokenized by the length of each word. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { TextLayout } from '../../../src/catalog/schema.ts'
import { InoriginError } from '../../../src/error.ts'
import { parseInput } from '../../../src/predictor/parse-inputs.ts'
import { decodeOutput, encodeTensor, readTokenRows } from '../../../src/predictor/tensor-codec.ts'
import type { RawTensor, Shape } from '../../../src/predictor/tensor.ts'
import {
  encodeTokens,
  openTokenizers,
  type TextTensorSpec,
  type TextTokenizer,
  tokenizeAll,
} from '../../../src/predictor/text.ts'
import type { OutputParameter } from '../../../src/types/index.ts'
import type { ElementType } from '../../../src/values/elements.ts'

const tensor = (
  type: ElementType,
  data: RawTensor['data'] | number[],
  shape: readonly number[],
): RawTensor => ({ type, data: Array.isArray(data) ? toData(type, data) : data, shape })

function toData(type: ElementType, data: unknown[]): RawTensor['data'] {
  if (type === 'float32') return Float32Array.from(data as number[])
  if (type === 'int32') return Int32Array.from(data as number[])
  if (type === 'int64') return BigInt64Array.from(data as number[], BigInt)
  if (type === 'float16') return Uint16Array.from(data as number[])
  if (type === 'string') return data as string[]
  return Uint8Array.from(data as number[])
}

/** Returns the tensors of texts. */
const encodeText = (
  texts: readonly string[],
  type: ElementType,
  spec: TextTensorSpec,
  pairs: readonly string[] | null = null,
) => encodeTokens(tokenizeAll(texts, spec, 'inputs.text', pairs), 'ids', type, spec, 'inputs.text')

describe('The shape of an input', () => {
  async function shapeOf(value: unknown, shape: Shape | null): Promise<readonly number[]> {
    const checked = parseInput({ name: 'x', type: 'float32' }, value, 'inputs.x')
    return (await encodeTensor(checked, { type: 'float32', shape }, 'inputs.x')).shape
  }
  /** A flat array of this length. */
  const flat = (length: number): number[] => Array.from({ length }, (_, at) => at)
  const column = { data: [1, 2], shape: [2, 1] }

  test.each<[unknown, Shape | null, number[]]>([
    [1, null, []],
    [1, [], []],
    [1, [1], [1]],
    [1, [null], [1]],
    [1, [null, 1, null], [1, 1, 1]],
    [flat(2), null, [2]],
    [flat(2), [2], [2]],
    [flat(4), [null, 2], [2, 2]],
    [flat(4), [1, 2, 2], [1, 2, 2]],
    [[], [null, 2], [0, 2]],
    [[[1, 2]], [null, null], [1, 2]],
    [flat(3), [null, null], [1, 3]],
    [new Float32Array(6), [null, 2, null], [1, 2, 3]],
    [column, [null, 1], [2, 1]],
    [column, null, [2, 1]],
  ])('%j in %j is %j', async (value, spec, shape) => {
    expect(await shapeOf(value, spec)).toEqual(shape)
  })

  const needed = 'must be given as { data, shape } with a shape like'
  test.each<[unknown, Shape, string]>([
    [1, [3], '1 value does not fill the shape [3].'],
    [flat(3), [null, 2], '3 values do not fill the shape [any, 2].'],
    [flat(2), [3], '2 values do not fill the shape [3].'],
    [flat(2), [2, null, null], `${needed} [2, any, any].`],
    [flat(2), [null, null, null], `${needed} [any, any, any].`],
    [[[1, 2]], [2, 1], 'must have the shape [2, 1], not [1, 2].'],
    [{ data: [1, 2], shape: [2] }, [1, 2], 'must have the shape [1, 2], not [2].'],
  ])('%j does not fit %j', async (value, spec, why) => {
    const refused = await shapeOf(value, spec).catch((thrown: unknown) => thrown)
    expect(refused).toBeInstanceOf(InoriginError)
    const message = `inputs.x: ${why}`
    expect(refused).toMatchObject({ kind: 'invalid_request', param: 'inputs.x', message })
  })
})

describe('Lists, dicts and bytes', () => {
  const spec = { type: 'float32', shape: [2, null], keys: ['red', 'blue'] } as const
  const encoded = tensor('float32', [1, 2], [2, 1])

  test('a list is its elements', async () => {
    const items = [[1], [2]]
    expect(await encodeTensor({ form: 'list', items }, spec, 'inputs.x')).toEqual(encoded)
  })

  test('a dict is its values, in the order of the keys and without the others', async () => {
    const values = { blue: 2, green: 5, red: 1 }
    expect(await encodeTensor({ form: 'dict', values }, spec, 'inputs.x')).toEqual(encoded)
    const lacking = encodeTensor({ form: 'dict', values: { blue: 2 } }, spec, 'inputs.x')
    await expect(lacking).rejects.toMatchObject({ message: 'inputs.x.red: is required.' })
  })

  test('bytes are a tensor of bytes, also those of a Blob', async () => {
    const data = new Uint8Array([1, 2, 3])
    for (const bytes of [data, new Blob([data])]) {
      const found = encodeTensor({ form: 'binary', bytes }, { type: 'uint8', shape: [null] }, 'x')
      expect(await found).toEqual(tensor('uint8', data, [3]))
    }
  })
})

describe('The value of an output', () => {
  const numbers = ['one', 'two'].map((name, at) => ({ name, value: at + 1 }))
  const list = { type: 'list' } as const
  const enumeration = { type: 'int32', enumeration: numbers } as const
  const tenth = [{ name: 'tenth', value: 0.1 }]
  const halves = { data: new Float32Array([1, -2]), shape: [2] }
  const square = [
    [1, 2],
    [3, 4],
  ]

  test.each<[Partial<OutputParameter>, RawTensor, unknown]>([
    [{ type: 'float32' }, tensor('float32', [0.5], []), 0.5],
    [{ type: 'float32' }, tensor('float32', [0.5], [1]), 0.5],
    [
      { type: 'float32' },
      tensor('float32', [0.5], [1, 1]),
      { data: new Float32Array([0.5]), shape: [1, 1] },
    ],
    [{ type: 'float16' }, tensor('float16', [0x3c00], []), 1],
    [{ type: 'float16' }, tensor('float16', [0x3c00, 0xc000], [2]), halves],
    [{ type: 'int64' }, tensor('int64', [5], []), 5n],
    [{ type: 'bool' }, tensor('bool', [1], [1]), true],
    [{ type: 'bool' }, tensor('bool', [0], []), false],
    [{ type: 'string' }, tensor('string', ['text'], []), 'text'],
    [{ type: 'string' }, tensor('string', ['a', 'b'], [2]), { data: ['a', 'b'], shape: [2] }],
    [{ type: 'binary' }, tensor('uint8', [7], [1]), new Uint8Array([7])],
    [enumeration, tensor('int32', [2], [1]), 'two'],
    [{ ...enumeration, type: 'int64' }, tensor('int64', [1], []), 'one'],
    [enumeration, tensor('int32', [3], []), 3],
    [enumeration, tensor('int32', [2, 1, 4], [3]), { data: ['two', 'one', 4], shape: [3] }],
    [{ type: 'float32', enumeration: tenth }, tensor('float32', [0.1], []), 'tenth'],
    [list, tensor('float32', [1, 2, 3, 4], [2, 2]), square],
    [list, tensor('int64', [1], [1]), [1n]],
    [list, tensor('bool', [1, 0], [2, 1]), [[true], [false]]],
    [list, tensor('string', ['a', 'b'], [2]), ['a', 'b']],
    [list, tensor('float32', [], [2, 0]), [[], []]],
  ])('%j: %o', (parameter, given, value) => {
    expect(decodeOutput({ name: 'y', type: 'float32', ...parameter }, given)).toEqual(value)
  })

  test('that is a dict has the keys of its binding', () => {
    const given = tensor('float16', [0x3c00, 0xc000], [1, 2])
    const value = decodeOutput({ name: 'y', type: 'dict' }, given, { keys: ['up', 'down'] })
    expect(value).toEqual({ up: 1, down: -2 })
  })
})

describe('Texts', () => {
  const layout: TextLayout = { tokenizer: 'tokenizer.json', mask: 'mask', types: 'types', most: 3 }
  /** Tokens are the lengths of words; those around the texts are 90, 91 and 92. */
  const tokenize: TextTokenizer['tokenize'] = (text, { pair, isPlain } = {}) => {
    const toIds = (words: string) => words.split(' ').map((word) => word.length)
    const [first, second] = [toIds(text), pair === undefined ? [] : toIds(pair)]
    if (!isFramed || isPlain) return { ids: first, types: first.map(() => 0) }
    const [one, two] = [[90, ...first, 91], pair === undefined ? [] : [...second, 92]]
    return { ids: [...one, ...two], types: [...one.map(() => 0), ...two.map(() => 1)] }
  }
  const tokenizer: TextTokenizer = {
    tokenize,
    locate: () => [],
    decode: () => '',
    idOf: () => undefined,
  }
  let isFramed = false
  afterEach(() => {
    isFramed = false
  })

  function encode(
    texts: readonly string[],
    changes: Partial<TextLayout> = {},
    type: ElementType = 'int64',
  ): Record<string, RawTensor> {
    const spec = { layout: { ...layout, ...changes }, tokenizer }
    return Object.fromEntries(encodeText(texts, type, spec))
  }

  test('are padded to the longest, and the mask says how far', () => {
    expect(encode(['a bb', 'ccc a bb'])).toEqual({
      ids: tensor('int64', [1, 2, 0, 3, 1, 2], [2, 3]),
      mask: tensor('int64', [1, 1, 0, 1, 1, 1], [2, 3]),
      types: tensor('int64', Array<number>(6).fill(0), [2, 3]),
    })
  })

  test('have tokens of the type that the model takes', () => {
    const ids = tensor('int32', [1, 2], [1, 2])
    expect(encode(['a bb'], { mask: undefined, types: undefined }, 'int32')).toEqual({ ids })
  })

  const long = 'the text has 4 tokens, but the maximum is 3. Shorten it.'
  const many = [...Array<string>(2 ** 17).fill('a'), 'a a a']
  test.each<[string[], Partial<TextLayout>, string]>([
    [[], {}, 'inputs.text: must have at least one text.'],
    [['a a a a'], {}, `inputs.text: ${long}`],
    [['a', 'a a a a'], {}, `inputs.text[1]: ${long}`],
    [
      many,
      {},
      'inputs.text: 131073 texts of up to 3 tokens are more than 262144 tokens. Send fewer texts at once.',
    ],
    [
      ['a', 'a a'],
      { mask: undefined },
      'inputs.text: the model takes texts of equal length only; send them one by one.',
    ],
  ])('are refused: %#', (texts, changes, message) => {
    expect(() => encode(texts, changes)).toThrow(
      expect.objectContaining({ kind: 'invalid_request', message }),
    )
  })

  test.each<[string, string | null, 'start' | 'end', number, number[], number[]]>([
    ['a bb ccc dddd', null, 'end', 4, [90, 1, 2, 91], [0, 0, 0, 0]],
    ['a bb ccc dddd', null, 'start', 4, [90, 3, 4, 91], [0, 0, 0, 0]],
    ['a bb', null, 'end', 4, [90, 1, 2, 91], [0, 0, 0, 0]],
    // Of a pair, the longer text is cut first, then both to the same length.
    ['a', 'bb bb bb bb', 'end', 6, [90, 1, 91, 2, 2, 92], [0, 0, 0, 1, 1, 1]],
    ['a a a a', 'bb', 'end', 6, [90, 1, 1, 91, 2, 92], [0, 0, 0, 0, 1, 1]],
    ['a a a a', 'bb bb bb bb bb', 'end', 6, [90, 1, 91, 2, 2, 92], [0, 0, 0, 1, 1, 1]],
    ['a a a a a', 'bb bb bb bb', 'end', 6, [90, 1, 1, 91, 2, 92], [0, 0, 0, 0, 1, 1]],
  ])('%j with %j are cut at the %s to %i tokens', (text, pair, truncate, most, ids, types) => {
    isFramed = true
    const spec = { layout: { ...layout, truncate, most }, tokenizer }
    const pairs = pair === null ? null : [pair]
    const encoded = encodeText([text], 'int64', spec, pairs)
    const shape = [1, ids.length]
    expect(encoded.get('ids')).toEqual(tensor('int64', ids, shape))
    expect(encoded.get('types')).toEqual(tensor('int64', types, shape))
  })

  test('are made of labels by a template, alone or as the second of each pair', () => {
    const own = { ...layout, most: 9, template: 'like' }
    const read = (value: unknown, labelled: boolean) => {
      const list = parseInput({ name: 'x', type: 'list' }, ['ccc', 'dd'], 'inputs.x')
      const template = parseInput({ name: 'like', type: 'string' }, 'a {}', 'inputs.like')
      const given = new Map([
        ['like', template],
        ['names', list],
      ])
      const spec = { layout: labelled ? { ...own, labels: 'names' } : own, tokenizer }
      const type = Array.isArray(value) ? 'list' : 'string'
      return readTokenRows(
        parseInput({ name: 't', type }, value, 'inputs.t'),
        spec,
        'inputs.t',
        given,
      )
    }
    expect(read(['ccc', 'dd'], false)).toMatchObject({
      texts: ['a ccc', 'a dd'],
      pairs: null,
      candidates: ['ccc', 'dd'],
    })
    expect(read('bb', true)).toMatchObject({
      texts: ['bb', 'bb'],
      pairs: ['a ccc', 'a dd'],
      candidates: ['ccc', 'dd'],
    })
    expect(() => read(['a', 'b'], true)).toThrow('inputs.t: must be one text with names.')
  })

  test('are filled up to a length without a mask', () => {
    const { ids } = encode(['a'], { length: 3, mask: undefined, pad: 7 })
    expect(ids).toEqual(tensor('int64', [1, 7, 7], [1, 3]))
  })

  test('are filled up with the padding token, and each needs its second text', () => {
    expect(encode(['a bb', 'ccc'], { pad: 7 })['ids']).toEqual(
      tensor('int64', [1, 2, 3, 7], [2, 2]),
    )
    const spec = { layout: { ...layout, pair: 'second' }, tokenizer }
    expect(() => encodeText(['a', 'b'], 'int64', spec, ['c'])).toThrow(
      'inputs.second: has 1 texts, but there are 2 first ones.',
    )
  })

  const shapeOf = async (type: 'string' | 'list', value: unknown): Promise<unknown> => {
    const spec = { layout, tokenizer }
    const checked = parseInput({ name: 'text', type }, value, 'inputs.text')
    const { rows } = readTokenRows(checked, spec, 'inputs.text')
    return encodeTokens(rows, 'ids', 'int64', spec, 'inputs.text').get('ids')?.shape
  }

  test.each<['string' | 'list', unknown, number[]]>([
    ['string', 'a bb', [1, 2]],
    ['string', '', [1, 1]],
    ['string', ['a bb', 'c'], [2, 2]],
    ['list', ['a', 'b', 'c'], [3, 1]],
  ])('may be the %s %j', async (type, value, shape) => {
    expect(await shapeOf(type, value)).toEqual(shape)
  })

  test.each<['string' | 'list', unknown, string]>([
    ['string', [['a'], ['b']], 'inputs.text: must be one text, or a list of them.'],
    ['list', ['a', 5], 'inputs.text[1]: must be text, not 5.'],
  ])('may not be the %s %j', async (type, value, message) => {
    await expect(shapeOf(type, value)).rejects.toMatchObject({ message })
  })
})

test('A tokenizer without a template of special tokens has texts cut, and types of 0', async () => {
  const name = 'tokenizer.json'
  const text = { tokenizer: name, mask: 'mask', types: 'types', most: 3, truncate: 'end' } as const
  const file = new URL('../../../demo/models/guide/tokenizer.json', import.meta.url)
  const files = new Map([[name, new Blob([readFileSync(file)])]])
  const bindings = { text: { tensor: 'ids', text } }
  const implementation = {
    id: 'a',
    engine: 'onnx',
    device: 'wasm',
    resources: [],
    bindings,
  } as const
  const named = { type: 'predictor', tag: '@a/b', name: '', created: '' } as const
  const entry = { ...named, signature: { inputs: [], outputs: [] }, implementations: [] }
  const tokenizers = await openTokenizers(entry, { ...implementation, resources: [] }, files)
  const tokenizer = tokenizers.get(name)
  if (!tokenizer) throw new Error('There is no tokenizer.')
  const encoded = encodeText(['one two three four five'], 'int64', { layout: text, tokenizer })
  expect(encoded.get('ids')?.shape).toEqual([1, 3])
  expect(encoded.get('types')).toEqual({
    type: 'int64',
    data: new BigInt64Array(3),
    shape: [1, 3],
  })
})
