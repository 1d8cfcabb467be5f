import { zipSync } from 'fflate'
import { expect, test } from 'vitest'
import { bytesUrl, PATH, plain, remoteHost, tag } from './remote-fixtures.ts'
import { errorOf, send } from './scripted-host.ts'

/** A NumPy file with a header of version 1. */
function npy(descr: string, shape: string, size: number, isTransposed = true): Uint8Array {
  const order = isTransposed ? 'True' : 'False'
  const header = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }\n`
  const file = new Uint8Array(10 + header.length + size)
  file.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >>> 8])
  file.set(new TextEncoder().encode(header), 10)
  return file
}

const zip = (file: Uint8Array): string => bytesUrl(zipSync({ 'arr_0.npy': file }, { level: 9 }))

async function run(inputs: Record<string, unknown>): Promise<Record<string, unknown> | undefined> {
  const host = remoteHost()
  const response = await send(host, PATH, { body: { tag, inputs } })
  if (response.status !== 200) throw new Error(await response.text())
  return host.ran[0]
}

async function refusal(inputs: Record<string, unknown>, status = 400): Promise<string> {
  const response = await send(remoteHost(), PATH, { body: { tag, inputs } })
  return (await errorOf(response, status)).message
}

test('a large array in column-major order is refused', async () => {
  const ones = '1,'.repeat(63)
  const cube = npy('|u1', '(2, 2097153)', 2 * 2_097_153)
  expect(await refusal({ uint8: { dtype: 'uint8', data: zip(cube) } })).toBe(
    'inputs.uint8.data: has 4194306 elements in column-major order, of at most 4194304. ' +
      'Send it in row-major order, as numpy.ascontiguousarray returns it.',
  )
  const flat = await run({
    uint8: { dtype: 'uint8', data: zip(npy('|u1', `(5000000,${ones})`, 5_000_000)) },
  })
  expect(flat).toMatchObject({ uint8: { data: { length: 5_000_000 } } })
})

test('axes of length 1 do not change the order of the others', async () => {
  const file = npy('|u1', '(1, 2, 1, 3, 1)', 6)
  file.set([0, 3, 1, 4, 2, 5], file.length - 6)
  expect(await run({ uint8: { dtype: 'uint8', data: bytesUrl(file) } })).toEqual({
    uint8: { data: Uint8Array.of(0, 1, 2, 3, 4, 5), shape: [1, 2, 1, 3, 1] },
  })
})

test('the type of an array is checked before its order', async () => {
  const data = zip(npy('|u1', '(2, 2097153)', 2 * 2_097_153))
  expect(await refusal({ int8: { dtype: 'int8', data } })).toBe(
    'inputs.int8.data: has type uint8, but int8 is declared.',
  )
})

test('the JSON values of all inputs count together', async () => {
  const numbers = plain(`[${'1,'.repeat(700_000)}1]`, 'application/json')
  const value = { dtype: 'list', data: numbers }
  expect(await refusal({ float32: value, list: value })).toMatch(
    /^inputs\.list\.data: has too many JSON values\. Send at most 1200000 values/,
  )
})

test.each([
  '(-2, -3)',
  '(0.5, 4)',
  '(0x2, 3)',
  '(2e0, 3)',
  '(2,, 3)',
  '(2 3,)',
  '(9007199254740993, 3)',
  '(Infinity, 3)',
])('the shape %s is refused in both orders', async (shape) => {
  for (const isTransposed of [false, true]) {
    const data = bytesUrl(npy('<i8', shape, 48, isTransposed))
    expect(await refusal({ int64: { dtype: 'int64', data } })).toBe(
      'inputs.int64.data: has a NumPy header whose shape is not a list of whole numbers.',
    )
  }
})

test.each(['(2,3)', '( 2 , 3, )', '(2, 3, 1)'])('the shape %s is accepted', async (shape) => {
  const data = bytesUrl(npy('<i8', shape, 48, false))
  expect(await run({ int64: { dtype: 'int64', data } })).toBeDefined()
})

test('an archive with another compression method is refused', async () => {
  const bytes = zipSync({ 'arr_0.npy': npy('|u1', '(6,)', 6) })
  const directory = bytes.findIndex((byte, at) => byte === 0x50 && bytes[at + 2] === 1)
  new DataView(bytes.buffer).setUint16(directory + 10, 12, true)
  expect(await refusal({ uint8: { dtype: 'uint8', data: bytesUrl(bytes) } })).toBe(
    'inputs.uint8.data: is an archive that is compressed by method 12. Send it with method 8 (deflate).',
  )
})

test('the bytes of all arrays count together, after their conversion', async () => {
  const halves = zip(npy('<f2', '(8388610,)', 2 * 8_388_610, false))
  expect(await refusal({ float64: { dtype: 'float16', data: halves } })).toBe(
    'inputs.float64.data: has 8388610 elements of type float16, which become float64. ' +
      'The arrays of all inputs then have more than 67108864 bytes. Send less at once.',
  )
  const bytes = { dtype: 'uint8', data: zip(npy('|u1', '(40000000,)', 40_000_000, false)) }
  expect(await run({ uint8: bytes })).toBeDefined()
  expect(await refusal({ uint8: bytes, string: bytes }, 413)).toBe(
    'inputs.string.data: decompresses to more than 27108864 bytes. Send less at once.',
  )
})

test('a long name of an input is repeated in part only', async () => {
  expect(await refusal({ ['x'.repeat(1_000_000)]: 1 })).toMatch(
    /^inputs\.x{100}\.\.\.: unknown input\. Expected: /,
  )
})
