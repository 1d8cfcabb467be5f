import { unzipSync, zipSync } from 'fflate'
import { describe, expect, it, test } from 'vitest'
import { bytesOf, bytesUrl, npz, PATH, plain, remoteHost, tag } from './remote-fixtures.ts'
import { errorOf, send } from './scripted-host.ts'

/** What the predictor got for the input of that name. */
async function taken(name: string, value: unknown): Promise<unknown> {
  const host = remoteHost()
  const response = await send(host, PATH, { body: { tag, inputs: { [name]: value } } })
  if (response.status !== 200) throw new Error(await response.text())
  return host.ran[0]?.[name]
}

async function refusal(name: string, value: unknown, status = 400): Promise<string> {
  const host = remoteHost()
  const response = await send(host, PATH, { body: { tag, inputs: { [name]: value } } })
  const { message, param } = await errorOf(response, status)
  expect(host.ran).toEqual([])
  expect(message.startsWith(`${param}: `)).toBe(true)
  return message
}

describe('values as clients of today send them', () => {
  it.each<[string, unknown, unknown]>([
    [
      'float32',
      { data: npz('matrix'), dtype: 'float32' },
      { data: Float32Array.of(0, 1, 2, 3, 4, 5), shape: [2, 3] },
    ],
    [
      'float32',
      { data: npz('turned'), dtype: 'float32' },
      { data: Float32Array.of(0, 1, 2, 3, 4, 5), shape: [2, 3] },
    ],
    [
      'float16',
      { data: npz('halves'), dtype: 'float16' },
      { data: Uint16Array.of(0x3800, 0xc000), shape: [2] },
    ],
    [
      'int64',
      { data: npz('large'), dtype: 'int64' },
      { data: BigInt64Array.of(2n ** 62n), shape: [1] },
    ],
    ['bool', { data: npz('truth'), dtype: 'bool' }, { data: Uint8Array.of(1, 0), shape: [2] }],
    // A whole number is an int32, whatever it is for.
    ['int32', { data: npz('three'), dtype: 'int32' }, { data: Int32Array.of(3), shape: [] }],
    ['float32', { data: npz('three'), dtype: 'int32' }, { data: Float32Array.of(3), shape: [] }],
    ['int64', { data: npz('three'), dtype: 'int32' }, { data: [3], shape: [] }],
    [
      'float64',
      { data: npz('large'), dtype: 'int64' },
      { data: Float64Array.of(2 ** 62), shape: [1] },
    ],
    [
      'float32',
      { data: npz('halves'), dtype: 'float16' },
      { data: Float32Array.of(0.5, -2), shape: [2] },
    ],
    ['float32', { data: npz('truth'), dtype: 'bool' }, { data: [true, false], shape: [2] }],
    ['string', { data: plain('\xc3\xa9t\xc3\xa9'), dtype: 'string' }, 'été'],
    [
      'list',
      { data: plain('[1,["a",null]]', 'application/json'), dtype: 'list' },
      [1, ['a', null]],
    ],
    ['float32', { data: plain('[0.5,2]', 'application/json'), dtype: 'list' }, [0.5, 2]],
    ['dict', { data: plain('{"a":{"b":1}}', 'application/json'), dtype: 'dict' }, { a: { b: 1 } }],
    ['binary', { data: plain('\x00\xff'), dtype: 'binary' }, Uint8Array.of(0, 255)],
    ['binary', { data: plain(''), dtype: 'binary' }, new Uint8Array(0)],
    ['string', { data: null, dtype: 'null' }, null],
  ])('%s %o', async (name, value, input) => {
    expect(await taken(name, value)).toEqual(input)
  })

  test('an image is a file', async () => {
    const value = await taken('image', { data: plain('\x89PNG', 'image/png'), dtype: 'image' })
    expect(value).toBeInstanceOf(Blob)
    expect((value as Blob).type).toBe('image/png')
    expect(new Uint8Array(await (value as Blob).arrayBuffer())).toEqual(
      bytesOf(btoa('') + ',' + btoa('\x89PNG')),
    )
  })
})

describe('values as others send them', () => {
  const floats = bytesUrl(Float32Array.of(1.5, -2))

  it.each<[string, unknown, unknown]>([
    [
      'float32',
      { data: floats, type: 'float32', shape: [1, 2] },
      { data: Float32Array.of(1.5, -2), shape: [1, 2] },
    ],
    ['float32', { data: floats, dtype: 'float32' }, Float32Array.of(1.5, -2)],
    [
      'float64',
      { data: floats, dtype: 'float32', shape: [2] },
      { data: Float64Array.of(1.5, -2), shape: [2] },
    ],
    [
      'int64',
      { data: bytesUrl(BigInt64Array.of(-5n)), type: 'int64', shape: [] },
      { data: BigInt64Array.of(-5n), shape: [] },
    ],
    ['float32', { data: plain('2.5'), dtype: 'float32' }, 2.5],
    ['bool', { data: plain('true'), dtype: 'bool' }, true],
    ['float32', 2.5, 2.5],
    ['float32', [[1, 2]], [[1, 2]]],
    ['string', 'data:text/plain,', 'data:text/plain,'],
    ['dict', { data: 1 }, { data: 1 }],
    ['binary', plain('ab'), Uint8Array.of(97, 98)],
    ['bool', null, null],
  ])('%s %o', async (name, value, input) => {
    expect(await taken(name, value)).toEqual(input)
  })
})

describe('what cannot be carried is refused by name', () => {
  const lie = (url: string, at: number, size: number): string => {
    const bytes = bytesOf(url)
    const central = bytes.findIndex((byte, start) => byte === 0x50 && bytes[start + 2] === 1)
    new DataView(bytes.buffer).setUint32(central + at, size, true)
    return bytesUrl(bytes)
  }
  const [array] = Object.values(unzipSync(bytesOf(npz('matrix'))))
  const two = bytesUrl(
    zipSync({ 'a.npy': array ?? new Uint8Array(), 'b.npy': array ?? new Uint8Array() }),
  )

  it.each<[string, unknown, string]>([
    [
      'float32',
      { data: npz('three'), dtype: 'bfloat16' },
      'inputs.float32.dtype: "bfloat16" is not supported. Expected: float16, ',
    ],
    [
      'list',
      { data: npz('three'), dtype: 'array_list' },
      'inputs.list.dtype: "array_list" is not supported',
    ],
    ['list', { data: npz('three'), type: 5 }, 'inputs.list.type: 5 is not supported'],
    [
      'image',
      { data: 'https://a.b/c.png', dtype: 'image' },
      'inputs.image.data: is a URL that begins with https:; only data URLs are supported',
    ],
    ['image', 'http://a.b/c.png', 'inputs.image: is a URL that begins with http:'],
    ['image', { data: 'c.png', dtype: 'image' }, 'inputs.image.data: is not a URL'],
    [
      'string',
      { data: 'data:text/plain,a', dtype: 'string' },
      'inputs.string.data: must be a data URL in base64.',
    ],
    [
      'string',
      { data: 'data:;base64', dtype: 'string' },
      'inputs.string.data: must be a data URL in base64.',
    ],
    [
      'string',
      { data: 'data:;base64,?', dtype: 'string' },
      'inputs.string.data: is not valid base64.',
    ],
    ['string', { data: null, dtype: 'string' }, 'inputs.string.data: must be a data URL.'],
    ['string', { data: plain('\xff'), dtype: 'string' }, 'inputs.string.data: is not UTF-8.'],
    ['dict', { data: plain('{'), dtype: 'dict' }, 'inputs.dict.data: is not JSON.'],
    ['float32', { data: plain('a'), dtype: 'float32' }, 'inputs.float32.data: is not JSON.'],
    [
      'float32',
      { data: npz('three'), dtype: 'float32' },
      'inputs.float32.data: has type int32, but float32 is declared.',
    ],
    [
      'float32',
      { data: npz('swapped'), dtype: 'float32' },
      'inputs.float32.data: arrays of >f4 are not supported',
    ],
    ['string', { data: npz('words'), dtype: 'int32' }, 'inputs.string.data: arrays of <U1 are'],
    ['float32', { data: two, dtype: 'float32' }, 'inputs.float32.data: must contain exactly one'],
    [
      'float32',
      { data: plain('PK\x03\x04', 'application/zip'), dtype: 'float32' },
      'inputs.float32.data: is an archive that is damaged.',
    ],
    [
      'float32',
      { data: plain('\x93NUMPY', ''), dtype: 'float32' },
      'inputs.float32.data: is not a NumPy array.',
    ],
    [
      'float32',
      { data: plain('abc', ''), dtype: 'float32' },
      'inputs.float32.data: has 3 bytes, but each float32 takes 4.',
    ],
    [
      'float32',
      { data: bytesUrl(Float32Array.of(1)), dtype: 'float32', shape: [2] },
      'inputs.float32.data: shape [2] is 2 elements, but data has 1.',
    ],
    [
      'float32',
      { data: bytesUrl(Float32Array.of(1)), dtype: 'float32', shape: [0.5] },
      'inputs.float32.shape: must be an array of whole numbers.',
    ],
    [
      'radius',
      { data: npz('three'), dtype: 'int32' },
      'inputs.radius: unknown input. Expected: float16, ',
    ],
  ])('%s %o', async (name, value, message) => {
    expect((await refusal(name, value)).slice(0, message.length)).toBe(message)
  })

  test('an array with more dimensions than NumPy has', async () => {
    const value = { data: bytesUrl(Float32Array.of(1)), dtype: 'float32', shape: Array(65).fill(1) }
    expect(await refusal('float32', value)).toBe(
      'inputs.float32.shape: must have at most 64 dimensions.',
    )
  })

  test('many elements that would have to be converted one by one', { tags: ['slow'] }, async () => {
    const value = { data: `data:;base64,${'AAAA'.repeat(333_334)}`, dtype: 'int8' }
    expect(await refusal('int64', value)).toBe(
      'inputs.int64.data: has 1000002 elements of type int8. Send them as int64.',
    )
    expect(await taken('float32', value)).toEqual(new Float32Array(1_000_002))
  })

  test('JSON in a data URL that has too many values', async () => {
    const value = { data: plain(`[${'[],'.repeat(300_000)}1]`), dtype: 'list' }
    expect(await refusal('list', value)).toMatch(
      /^inputs\.list\.data: has too many JSON values\. Send at most /,
    )
  })

  test('an archive that says it unfolds to more than is taken', async () => {
    const value = { data: lie(npz('matrix'), 24, 2 ** 29), dtype: 'float32' }
    expect(await refusal('float32', value, 413)).toBe(
      'inputs.float32.data: decompresses to more than 67108864 bytes. Send less at once.',
    )
  })

  test('an archive that unfolds to more than it says', async () => {
    const value = { data: lie(npz('matrix'), 24, 100), dtype: 'float32' }
    expect(await refusal('float32', value)).toMatch(
      /^inputs\.float32\.data: (is an archive|has|shape)/,
    )
  })

  test('which ends where it does, as a little can unfold to minutes of work', async () => {
    const large = bytesUrl(zipSync({ 'a.npy': new Uint8Array(2 ** 25) }, { level: 9 }))
    expect(await refusal('float32', { data: lie(large, 24, 100), dtype: 'float32' })).toBe(
      'inputs.float32.data: is an archive with more bytes than it declares.',
    )
  })

  test.each([
    ['cut off', 40],
    ['wrong', 71],
  ])('an archive whose compressed bytes are %s', async (_, last) => {
    const bytes = bytesOf(npz('matrix'))
    bytes.fill(255, 59, last)
    const central = bytes.findIndex((byte, start) => byte === 0x50 && bytes[start + 2] === 1)
    new DataView(bytes.buffer).setUint32(central + 20, last - 20, true)
    expect(await refusal('float32', { data: bytesUrl(bytes), dtype: 'float32' })).toBe(
      'inputs.float32.data: is an archive that is damaged.',
    )
  })

  test('an archive that unfolds to less than it says', async () => {
    const value = { data: lie(npz('matrix'), 24, 10_000), dtype: 'float32' }
    expect(await refusal('float32', value)).toMatch(
      /^inputs\.float32\.data: (is an archive|has|shape)/,
    )
  })
})
