import { unzipSync } from 'fflate'
import { describe, expect, it, test } from 'vitest'
import {
  bytesOf,
  bytesUrl,
  PATH,
  plain,
  type Prediction,
  remoteHost,
  tag,
} from './remote-fixtures.ts'
import { send } from './scripted-host.ts'

async function results(
  outputs: Record<string, unknown>,
  inputs: Record<string, unknown> = {},
): Promise<Prediction['results']> {
  const response = await send(remoteHost(outputs), PATH, { body: { tag, inputs } })
  return ((await response.json()) as Prediction).results
}

describe('results', () => {
  const matrix = { data: Float32Array.of(0, 1, 2, 3, 4, 5), shape: [2, 3] }

  test('numbers are arrays of NumPy', async () => {
    const [given] = (await results({ float32: matrix })) ?? []
    expect(given).toEqual({
      data: expect.stringMatching(/^data:application\/x-npz;base64,UEsD/),
      dtype: 'float32',
    })
    const { 'arr_0.npy': file } = unzipSync(bytesOf(given?.data ?? ''))
    const header = `\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }`
    const text = String.fromCharCode(...(file ?? []))
    expect(text.slice(0, 128)).toBe(`${header.padEnd(127)}\n`)
    expect(new Float32Array(file?.slice(128).buffer ?? new ArrayBuffer())).toEqual(matrix.data)
  })

  it.each<[string, unknown, string, string, string]>([
    ['float32', NaN, 'float32', "'<f4', 'fortran_order': False, 'shape': ()", '\x00\x00\xc0\x7f'],
    [
      'float16',
      { data: Float32Array.of(0.5, -2), shape: [2] },
      'float16',
      "'<f2', 'fortran_order': False, 'shape': (2,)",
      '\x00\x38\x00\xc0',
    ],
    ['int8', -1, 'int8', "'|i1', 'fortran_order': False, 'shape': ()", '\xff'],
    [
      'uint64',
      2n ** 63n,
      'uint64',
      "'<u8', 'fortran_order': False, 'shape': ()",
      `${'\x00'.repeat(7)}\x80`,
    ],
    ['bool', true, 'bool', "'|b1', 'fortran_order': False, 'shape': ()", '\x01'],
    [
      'bool',
      { data: Uint8Array.of(1, 0), shape: [1, 2] },
      'bool',
      "'|b1', 'fortran_order': False, 'shape': (1, 2,)",
      '\x01\x00',
    ],
    [
      'float32',
      { data: new Float32Array(0), shape: [0] },
      'float32',
      "'<f4', 'fortran_order': False, 'shape': (0,)",
      '',
    ],
  ])('%s %o', async (name, value, dtype, header, content) => {
    const [given] = (await results({ [name]: value })) ?? []
    expect(given?.dtype).toBe(dtype)
    const text = String.fromCharCode(...(unzipSync(bytesOf(given?.data ?? ''))['arr_0.npy'] ?? []))
    expect(text).toContain(header)
    expect(text.slice(128)).toBe(content)
  })

  it.each<[string, unknown, object]>([
    ['string', 'été', { data: plain('\xc3\xa9t\xc3\xa9'), dtype: 'string' }],
    ['int32', 'seven', { data: plain('seven'), dtype: 'string' }],
    [
      'int32',
      { data: ['one', 2], shape: [2] },
      { data: plain('["one",2]', 'application/json'), dtype: 'list' },
    ],
    [
      'string',
      { data: ['a', 'b'], shape: [2, 1] },
      { data: plain('[["a"],["b"]]', 'application/json'), dtype: 'list' },
    ],
    [
      'list',
      [1n, [2n ** 60n], null],
      { data: plain('[1,[1152921504606846976],null]', 'application/json'), dtype: 'list' },
    ],
    [
      'dict',
      { a: [true], 'b"': 0.5 },
      { data: plain('{"a":[true],"b\\"":0.5}', 'application/json'), dtype: 'dict' },
    ],
    ['image', Uint8Array.of(137, 80), { data: plain('\x89P', 'image/png'), dtype: 'image' }],
    [
      'binary',
      new Uint8Array(100_000),
      {
        data: `data:application/octet-stream;base64,${btoa('\x00'.repeat(100_000))}`,
        dtype: 'binary',
      },
    ],
  ])('%s %o', async (name, value, result) => {
    expect(await results({ [name]: value })).toEqual([result])
  })

  test('in the order of the signature, whatever their names', async () => {
    const outputs = { string_b: 'b', 2: 'two', string_a: 'a', 1: 'one' }
    const host = remoteHost(outputs)
    host.signature.outputs.reverse()
    const prediction = (await (await send(host, PATH, { body: { tag } })).json()) as Prediction
    expect(prediction.results?.map(({ data }) => atob(data.split(',')[1] ?? ''))).toEqual(
      host.signature.outputs.map(({ name }) => outputs[name as keyof typeof outputs]),
    )
  })

  test.each<[string, unknown, object]>([
    [
      'bytes and a shape, called type',
      { data: bytesUrl(Float32Array.of(1)), type: 'float32', shape: [1] },
      { data: bytesUrl(matrix.data), type: 'float32', shape: [2, 3] },
    ],
    [
      'bytes and a shape',
      { data: bytesUrl(Float32Array.of(1)), dtype: 'float32' },
      { data: bytesUrl(matrix.data), dtype: 'float32', shape: [2, 3] },
    ],
    [
      'words',
      { data: plain('1.5'), dtype: 'float32' },
      { data: plain('[[0,1,2],[3,4,5]]', 'application/json'), dtype: 'float32' },
    ],
    [
      'words, of plain JSON',
      1.5,
      { data: plain('[[0,1,2],[3,4,5]]', 'application/json'), dtype: 'float32' },
    ],
  ])('%s are answered alike', async (_, float32, result) => {
    expect(await results({ float32: matrix }, { float32 })).toEqual([result])
  })

  test('a single number in words', async () => {
    expect(await results({ int64: 2n ** 62n, bool: false }, { float32: 1 })).toEqual([
      { data: plain('4611686018427387904'), dtype: 'int64' },
      { data: plain('false'), dtype: 'bool' },
    ])
  })

  it.each<[Record<string, unknown>, Record<string, unknown>, string]>([
    [{ list: [NaN] }, {}, 'outputs.list: contains NaN, which JSON cannot represent.'],
    [
      { float32: Infinity },
      { float32: 1 },
      'outputs.float32: contains Infinity, which JSON cannot represent.',
    ],
    [
      { image: [Uint8Array.of(1), Uint8Array.of(2)] },
      {},
      'outputs.image: has several images, but only one can be sent. Send one at a time.',
    ],
  ])('%o cannot be carried, and says so', async (outputs, inputs, message) => {
    const response = await send(remoteHost(outputs), PATH, { body: { tag, inputs } })
    expect(await response.json()).toMatchObject({ results: null, error: message })
  })
})
