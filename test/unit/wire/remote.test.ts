/** Predictions that clients run over HTTP: their responses, inputs and results. */
import { unzipSync, zipSync } from 'fflate'
import { describe, expect, it, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { runRemotely } from '../../../src/predictor/remote/run.ts'
import type {
  AcceptedEvent,
  PredictionEvent,
  RemotePredictionEvent,
  Signature,
} from '../../../src/types/index.ts'
import { progressOf } from '../../support/samples.ts'
import { AREA, errorOf, KEY, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/predictions/remote'
const { tag } = AREA

type Values = Record<string, unknown>

const TYPES = [
  'float16',
  'float32',
  'float64',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'bool',
  'string',
  'list',
  'dict',
  'image',
  'binary',
] as const

/** A predictor with an optional input of each type, which the type names. Its outputs are given. */
function remoteHost(outputs: Values = {}, script: readonly (PredictionEvent | Error)[] = []) {
  const ran: Values[] = []
  const signature: Signature = {
    inputs: TYPES.map((type) => ({ name: type, type, optional: true, defaultValue: null })),
    outputs: Object.keys(outputs).map((name) => {
      const type = TYPES.find((each) => name.startsWith(each)) ?? 'string'
      return { name, type }
    }),
  }
  async function* events(): AsyncGenerator<AcceptedEvent | PredictionEvent> {
    yield { type: 'accepted', ignored: [] }
    for (const event of script) {
      if (event instanceof Error) throw event
      yield event
    }
    yield { type: 'finish', result: { tag, outputs, latency: 12.5, device: 'wasm' } }
  }
  const host = scriptedHost({
    overrides: {
      createRemotePrediction: (request) =>
        runRemotely(request, signature, async (inputs) => {
          ran.push(inputs)
          return { events: events() }
        }),
    },
  })
  return Object.assign(host, { ran, signature })
}

interface Prediction {
  results: { data: string; dtype?: string }[] | null
  error: string | null
}

async function predict(inputs: Values, outputs: Values = {}): Promise<Prediction> {
  const response = await send(remoteHost(outputs), PATH, { body: { tag, inputs } })
  return response.json()
}

/** The inputs with which the predictor runs. */
async function inputsOf(inputs: Values): Promise<Values> {
  const host = remoteHost()
  const response = await send(host, PATH, { body: { tag, inputs } })
  expect(response.status, await response.text()).toBe(200)
  return host.ran[0] ?? {}
}

/** The message of an error, which begins with the path of the input in `param`. */
async function refusalOf(inputs: Values, status = 400): Promise<string> {
  const host = remoteHost()
  const response = await send(host, PATH, { body: { tag, inputs } })
  const { message, param } = await errorOf(response, status)
  expect(host.ran).toEqual([])
  expect(message.startsWith(`${param}: `)).toBe(true)
  return message
}

const plain = (text: string, mime = 'text/plain'): string => `data:${mime};base64,${btoa(text)}`
const json = (text: string) => plain(text, 'application/json')
const bytesUrl = (bytes: ArrayBufferView): string => {
  const { buffer, byteOffset, byteLength } = bytes
  const all = Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
  return `data:application/octet-stream;base64,${all.toString('base64')}`
}
const bytesOf = (url: string): Uint8Array =>
  Uint8Array.from(atob(url.split(',')[1] ?? ''), (letter) => letter.charCodeAt(0))
const typed = (dtype: string, data: unknown, shape?: unknown) => ({ data, dtype, shape })

/** A NumPy file with a header of version 1. */
function npy(descr: string, shape: string, content: Uint8Array, isTransposed = false): Uint8Array {
  const order = isTransposed ? 'True' : 'False'
  const header = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }\n`
  const file = new Uint8Array(10 + header.length + content.length)
  file.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >>> 8])
  file.set(new TextEncoder().encode(header), 10)
  file.set(content, 10 + header.length)
  return file
}
const zeros = (descr: string, shape: string, size: number, isTransposed = false) =>
  npy(descr, shape, new Uint8Array(size), isTransposed)
const zip = (file: Uint8Array): string => bytesUrl(zipSync({ 'arr_0.npy': file }, { level: 1 }))
const npz = (descr: string, shape: string, content: ArrayBufferView): string =>
  zip(npy(descr, shape, new Uint8Array(content.buffer)))

/** Archives as `numpy.savez_compressed` of NumPy 1.24 writes them. */
const NUMPY = {
  /** `array(3, int32)` */
  three: numpy(
    'UEsDBC0AAAAIAAAAIQBbutM7//////////8JABQAYXJyXzAubnB5AQAQAIQAAAAAAAAARgAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2mirqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RqaOgq1ChQBLmYGBgYAUEsBAi0DLQAAAAgAAAAhAFu60ztGAAAAhAAAAAkAAAAAAAAAAAAAAIABAAAAAGFycl8wLm5weVBLBQYAAAAAAQABADcAAACBAAAAAAA=',
  ),
  /** `arange(6, dtype=float32).reshape(2, 3)` */
  matrix: numpy(
    'UEsDBC0AAAAIAAAAIQBP6QAq//////////8JABQAYXJyXzAubnB5AQAQAJgAAAAAAAAAVQAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2airqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpGOgrGmjoKtQpkAy4GMGiwBxIOQATEDUC8wAEAUEsBAi0DLQAAAAgAAAAhAE/pACpVAAAAmAAAAAkAAAAAAAAAAAAAAIABAAAAAGFycl8wLm5weVBLBQYAAAAAAQABADcAAACQAAAAAAA=',
  ),
  /** The same in Fortran's order. */
  transposed: numpy(
    'UEsDBC0AAAAIAAAAIQDOLODT//////////8JABQAYXJyXzAubnB5AQAQAJgAAAAAAAAAVgAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2airqOgnpZfVFKUmBefX5SSChIPKSpNBQoXZyQWpAK5GkY6CsaaOgq1CuQDLgYwcHBgYGiwB2IHEIeBYYEDAFBLAQItAy0AAAAIAAAAIQDOLODTVgAAAJgAAAAJAAAAAAAAAAAAAACAAQAAAABhcnJfMC5ucHlQSwUGAAAAAAEAAQA3AAAAkQAAAAAA',
  ),
}
function numpy(base64: string): string {
  return `data:application/octet-stream;base64,${base64}`
}
const HALVES = npz('<f2', '(2,)', Uint16Array.of(0x3800, 0xc000))
const LARGE = npz('<i8', '(1,)', BigInt64Array.of(2n ** 62n))
const TRUTHS = npz('|b1', '(2,)', Uint8Array.of(1, 0))

const MATRIX = { data: Float32Array.of(0, 1, 2, 3, 4, 5), shape: [2, 3] }

describe('a response', () => {
  test('is a prediction, and lists the fields without effect', async () => {
    const body = { tag, inputs: {}, acceleration: 'remote_auto', clientId: 'node', extra: 1 }
    const response = await send(remoteHost({ string: 'a' }), PATH, { body })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-inorigin-ignored')).toBe('clientId, extra')
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^pred_[0-9a-f]{24}$/),
      tag,
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      results: [{ data: plain('a'), dtype: 'string' }],
      latency: 12.5,
      error: null,
      logs: null,
    })
    const chosen = { tag, acceleration: 'remote_a100' }
    const { headers } = await send(remoteHost(), PATH, { body: chosen })
    expect(headers.get('x-inorigin-ignored')).toBe('acceleration')
  })

  const progress = progressOf({ tag, phase: 'download', loadedBytes: 1, totalBytes: 2 })
  const STATUS: PredictionEvent[] = [{ type: 'progress', progress }, { type: 'heartbeat' }]

  test('begins with spaces while it is computed', async () => {
    const host = remoteHost({ string: 'a' }, STATUS)
    const text = await (await send(host, PATH, { body: { tag } })).text()
    expect(text.slice(0, 3)).toBe('  {')
    expect(JSON.parse(text)).toMatchObject({ error: null })
  })

  test('is one event in a stream, after comments', async () => {
    const host = remoteHost({ string: 'a' }, STATUS)
    const response = await send(host, PATH, { body: { tag, stream: true } })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const [first, second, event, ...rest] = (await response.text()).split('\n\n')
    expect([first, second, rest]).toEqual([`: downloading ${tag} 50%`, ': heartbeat', ['']])
    const [head, data = ''] = event?.split('\ndata: ') ?? []
    expect(head).toBe('event: prediction')
    expect(JSON.parse(data)).toMatchObject({ results: [{ dtype: 'string' }], error: null })
  })

  test.each([false, true])('has the error of a late failure, stream: %s', async (stream) => {
    const late = new InoriginError('unavailable', 'The device gave out.')
    const host = remoteHost({ string: 'a' }, [{ type: 'heartbeat' }, late])
    const text = await (await send(host, PATH, { body: { tag, stream } })).text()
    const prediction = { results: null, latency: null, error: 'The device gave out.' }
    expect(JSON.parse(text.replace(/^[^{]*/, ''))).toMatchObject(prediction)
  })

  test.each([false, true])('has a status if it fails at once, stream: %s', async (stream) => {
    const failure = { param: 'inputs.radius', message: 'inputs.radius: is required.' }
    const error = new InoriginError('invalid_request', failure.message, { param: failure.param })
    const createRemotePrediction = () => Promise.reject(error)
    const host = scriptedHost({ overrides: { createRemotePrediction } })
    const response = await send(host, PATH, { body: { tag, stream } })
    expect(await errorOf(response, 400)).toMatchObject(failure)
  })

  test.each([
    [404, 'tag', { tag: '@yusuf/none' }],
    [400, 'tag', { tag: undefined }],
    [400, 'inputs', { inputs: [1] }],
    [400, 'stream', { stream: 'yes' }],
    [400, 'acceleration', { acceleration: 5 }],
  ])('has the status %i for %s in %j', async (status, param, fields) => {
    const response = await send(scriptedHost(), PATH, { body: { tag, ...fields } })
    expect((await errorOf(response, status)).param).toBe(param)
  })

  test('ends the work when it is canceled', async () => {
    let seen: AbortSignal | undefined
    async function* events(): AsyncGenerator<RemotePredictionEvent> {
      yield { type: 'heartbeat' }
      await new Promise(() => {})
    }
    const host = scriptedHost({
      overrides: {
        async createRemotePrediction(_, { signal }) {
          seen = signal
          return { tag, events: events() }
        },
      },
    })
    const response = await send(host, PATH, { body: { tag, stream: true } })
    const reader = response.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    expect(seen?.aborted).toBe(true)
  })
})

describe('a result', () => {
  test('with numbers is an array of NumPy', async () => {
    const { results } = await predict({}, { float32: MATRIX })
    const data = expect.stringMatching(/^data:application\/x-npz;base64,UEsD/)
    expect(results).toEqual([{ data, dtype: 'float32' }])
    const { 'arr_0.npy': file } = unzipSync(bytesOf(results?.[0]?.data ?? ''))
    const header = `\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }`
    const text = String.fromCharCode(...(file ?? []))
    expect(text.slice(0, 128)).toBe(`${header.padEnd(127)}\n`)
    expect(new Float32Array(file?.slice(128).buffer ?? new ArrayBuffer())).toEqual(MATRIX.data)
  })

  const HALF_NUMBERS = { data: Float32Array.of(0.5, -2), shape: [2] }
  it.each<[string, unknown, string, string, string]>([
    ['float32', NaN, '<f4', '()', '\x00\x00\xc0\x7f'],
    ['float16', HALF_NUMBERS, '<f2', '(2,)', '\x00\x38\x00\xc0'],
    ['int8', -1, '|i1', '()', '\xff'],
    ['uint64', 2n ** 63n, '<u8', '()', `${'\x00'.repeat(7)}\x80`],
    ['bool', true, '|b1', '()', '\x01'],
    ['bool', { data: Uint8Array.of(1, 0), shape: [1, 2] }, '|b1', '(1, 2,)', '\x01\x00'],
    ['float32', { data: new Float32Array(0), shape: [0] }, '<f4', '(0,)', ''],
  ])('of the type %s is an array: %o', async (name, value, descr, shape, content) => {
    const [given] = (await predict({}, { [name]: value })).results ?? []
    expect(given?.dtype).toBe(name)
    const { 'arr_0.npy': file = [] } = unzipSync(bytesOf(given?.data ?? ''))
    const text = String.fromCharCode(...file)
    expect(text).toContain(`'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}`)
    expect(text.slice(128)).toBe(content)
  })

  it.each<[string, unknown, object]>([
    ['string', 'été', typed('string', plain('\xc3\xa9t\xc3\xa9'))],
    ['int32', 'seven', typed('string', plain('seven'))],
    ['int32', { data: ['one', 2], shape: [2] }, typed('list', json('["one",2]'))],
    ['string', { data: ['a', 'b'], shape: [2, 1] }, typed('list', json('[["a"],["b"]]'))],
    ['list', [1n, [2n ** 60n], null], typed('list', json('[1,[1152921504606846976],null]'))],
    ['dict', { a: [true], 'b"': 0.5 }, typed('dict', json('{"a":[true],"b\\"":0.5}'))],
    ['image', Uint8Array.of(137, 80), typed('image', plain('\x89P', 'image/png'))],
    ['binary', new Uint8Array(100_000), typed('binary', bytesUrl(new Uint8Array(100_000)))],
  ])('of the type %s is no array: %o', async (name, value, result) => {
    expect((await predict({}, { [name]: value })).results).toEqual([result])
  })

  test('has the place of its output in the signature', async () => {
    const outputs: Values = { string_b: 'b', 2: 'two', string_a: 'a', 1: 'one' }
    const host = remoteHost(outputs)
    host.signature.outputs.reverse()
    const prediction: Prediction = await (await send(host, PATH, { body: { tag } })).json()
    const texts = prediction.results?.map(({ data }) => atob(data.split(',')[1] ?? ''))
    expect(texts).toEqual(host.signature.outputs.map(({ name }) => outputs[name]))
  })

  const BYTES = bytesUrl(MATRIX.data)
  const WORDS = typed('float32', json('[[0,1,2],[3,4,5]]'))
  const ONE = bytesUrl(Float32Array.of(1))
  test.each<[string, unknown, object]>([
    [
      'bytes with a type',
      { data: ONE, type: 'float32', shape: [1] },
      { data: BYTES, type: 'float32', shape: [2, 3] },
    ],
    ['bytes with a dtype', { data: ONE, dtype: 'float32' }, typed('float32', BYTES, [2, 3])],
    ['text with a dtype', { data: plain('1.5'), dtype: 'float32' }, WORDS],
    ['plain JSON', 1.5, WORDS],
  ])('has the form of an input in %s', async (_, float32, result) => {
    expect((await predict({ float32 }, { float32: MATRIX })).results).toEqual([result])
  })

  test('is a number in text for an input in plain JSON', async () => {
    const { results } = await predict({ float32: 1 }, { int64: 2n ** 62n, bool: false })
    const expected = [typed('int64', plain('4611686018427387904')), typed('bool', plain('false'))]
    expect(results).toEqual(expected)
  })

  it.each<[Values, Values, string]>([
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
  ])('that cannot be sent is an error: %o', async (outputs, inputs, error) => {
    expect(await predict(inputs, outputs)).toMatchObject({ results: null, error })
  })
})

describe('an input', () => {
  const floats = bytesUrl(Float32Array.of(1.5, -2))

  it.each<[string, unknown, unknown]>([
    ['float32', typed('float32', NUMPY.matrix), MATRIX],
    ['float32', typed('float32', NUMPY.transposed), MATRIX],
    ['float16', typed('float16', HALVES), { data: Uint16Array.of(0x3800, 0xc000), shape: [2] }],
    ['int64', typed('int64', LARGE), { data: BigInt64Array.of(2n ** 62n), shape: [1] }],
    ['bool', typed('bool', TRUTHS), { data: Uint8Array.of(1, 0), shape: [2] }],
    // Clients send a whole number as int32, whatever type the input has.
    ['int32', typed('int32', NUMPY.three), { data: Int32Array.of(3), shape: [] }],
    ['float32', typed('int32', NUMPY.three), { data: Float32Array.of(3), shape: [] }],
    ['int64', typed('int32', NUMPY.three), { data: [3], shape: [] }],
    ['float64', typed('int64', LARGE), { data: Float64Array.of(2 ** 62), shape: [1] }],
    ['float32', typed('float16', HALVES), { data: Float32Array.of(0.5, -2), shape: [2] }],
    ['float32', typed('bool', TRUTHS), { data: [true, false], shape: [2] }],
    ['string', typed('string', plain('\xc3\xa9t\xc3\xa9')), 'été'],
    ['list', typed('list', json('[1,["a",null]]')), [1, ['a', null]]],
    ['float32', typed('list', json('[0.5,2]')), [0.5, 2]],
    ['dict', typed('dict', json('{"a":{"b":1}}')), { a: { b: 1 } }],
    ['binary', typed('binary', plain('\x00\xff')), Uint8Array.of(0, 255)],
    ['binary', typed('binary', plain('')), new Uint8Array(0)],
    ['string', typed('null', null), null],
    // Other clients send bytes, text or plain JSON.
    [
      'float32',
      { data: floats, type: 'float32', shape: [1, 2] },
      { data: Float32Array.of(1.5, -2), shape: [1, 2] },
    ],
    ['float32', typed('float32', floats), Float32Array.of(1.5, -2)],
    ['float64', typed('float32', floats, [2]), { data: Float64Array.of(1.5, -2), shape: [2] }],
    [
      'int64',
      { data: bytesUrl(BigInt64Array.of(-5n)), type: 'int64', shape: [] },
      { data: BigInt64Array.of(-5n), shape: [] },
    ],
    ['float32', { data: plain('2.5'), dtype: null, type: 'float32' }, 2.5],
    ['float32', typed('float32', plain('2.5')), 2.5],
    ['bool', typed('bool', plain('true')), true],
    ['float32', 2.5, 2.5],
    ['float32', [[1, 2]], [[1, 2]]],
    ['string', 'data:text/plain,', 'data:text/plain,'],
    ['dict', { data: 1 }, { data: 1 }],
    ['binary', plain('ab'), Uint8Array.of(97, 98)],
    ['bool', null, null],
  ])('of the type %s is parsed: %o', async (name, value, input) => {
    expect(await inputsOf({ [name]: value })).toEqual({ [name]: input })
  })

  test('that is an image becomes a file', async () => {
    const image = typed('image', plain('\x89PNG', 'image/png'))
    const file = (await inputsOf({ image }))['image'] as Blob
    expect(file.type).toBe('image/png')
    expect(await file.bytes()).toEqual(Uint8Array.of(0x89, 0x50, 0x4e, 0x47))
  })

  const [array = new Uint8Array()] = Object.values(unzipSync(bytesOf(NUMPY.matrix)))
  const two = bytesUrl(zipSync({ 'a.npy': array, 'b.npy': array }))
  const one = bytesUrl(Float32Array.of(1))
  const swapped = npz('>f4', '(1,)', Float32Array.of(1))
  const words = npz('<U1', '(1,)', Uint32Array.of(97))
  const NO_DATA_URL = '.data: must be a data URL in base64.'

  it.each<[string, unknown, string]>([
    [
      'float32',
      typed('bfloat16', NUMPY.three),
      '.dtype: "bfloat16" is not supported. Expected: float16, ',
    ],
    ['list', typed('array_list', NUMPY.three), '.dtype: "array_list" is not supported'],
    ['list', { data: NUMPY.three, type: 5 }, '.type: 5 is not supported'],
    [
      'image',
      typed('image', 'https://a.b/c.png'),
      '.data: is a URL that begins with https:; only data URLs are supported',
    ],
    ['image', 'http://a.b/c.png', ': is a URL that begins with http:'],
    ['image', typed('image', 'c.png'), '.data: is not a URL'],
    ['string', typed('string', 'data:text/plain,a'), NO_DATA_URL],
    ['string', typed('string', 'data:;base64'), NO_DATA_URL],
    ['string', typed('string', 'data:;base64,?'), '.data: is not valid base64.'],
    ['string', typed('string', null), '.data: must be a data URL.'],
    ['string', typed('string', plain('\xff')), '.data: is not UTF-8.'],
    ['dict', typed('dict', plain('{')), '.data: is not JSON.'],
    ['float32', typed('float32', plain('a')), '.data: is not JSON.'],
    ['float32', typed('float32', NUMPY.three), '.data: has type int32, but float32 is declared.'],
    ['float32', typed('float32', swapped), '.data: arrays of >f4 are not supported'],
    ['string', typed('int32', words), '.data: arrays of <U1 are'],
    ['float32', typed('float32', two), '.data: must contain exactly one'],
    [
      'float32',
      typed('float32', plain('PK\x03\x04', 'application/zip')),
      '.data: is an archive that is damaged.',
    ],
    ['float32', typed('float32', plain('\x93NUMPY', '')), '.data: is not a NumPy array.'],
    [
      'float32',
      typed('float32', plain('abc', '')),
      '.data: has 3 bytes, but each float32 takes 4.',
    ],
    ['float32', typed('float32', one, [2]), '.data: shape [2] is 2 elements, but data has 1.'],
    ['float32', typed('float32', one, [0.5]), '.shape: must be an array of whole numbers.'],
    ['float32', typed('float32', one, Array(65).fill(1)), '.shape: must have at most 64 dim'],
    ['radius', typed('int32', NUMPY.three), ': unknown input. Expected: float16, '],
  ])('%s is refused by its path: %o', async (name, value, message) => {
    const expected = `inputs.${name}${message}`
    expect((await refusalOf({ [name]: value })).slice(0, expected.length)).toBe(expected)
  })

  test('with a long name is repeated in part', async () => {
    expect(await refusalOf({ ['x'.repeat(1_000_000)]: 1 })).toMatch(
      /^inputs\.x{100}\.\.\.: unknown input\. Expected: /,
    )
  })

  test('needs an API key where there are keys', async () => {
    const host = scriptedHost({ keyed: true })
    const body = { tag, inputs: { a: 1 } }
    expect((await send(host, PATH, { body })).status).toBe(401)
    const headers = { authorization: `Bearer ${KEY}` }
    expect((await send(host, PATH, { headers, body })).status).toBe(400)
  })
})

describe('an archive', () => {
  /** Finds the entry of a file in the directory at the end of an archive. */
  const directoryOf = (bytes: Uint8Array): number =>
    bytes.findIndex((byte, at) => byte === 0x50 && bytes[at + 2] === 1)
  function changed(url: string, change: (entry: DataView, bytes: Uint8Array) => void): string {
    const bytes = bytesOf(url)
    change(new DataView(bytes.buffer, directoryOf(bytes)), bytes)
    return bytesUrl(bytes)
  }
  const declaring = (url: string, size: number) =>
    changed(url, (entry) => entry.setUint32(24, size, true))
  const refused = (data: string, status?: number) =>
    refusalOf({ float32: typed('float32', data) }, status)

  test('that declares more than the limit is refused', async () => {
    expect(await refused(declaring(NUMPY.matrix, 2 ** 29), 413)).toBe(
      'inputs.float32.data: decompresses to more than 67108864 bytes. Send less at once.',
    )
  })

  test.each([100, 10_000])('that declares a wrong size, %i, is refused', async (size) => {
    expect(await refused(declaring(NUMPY.matrix, size))).toMatch(
      /^inputs\.float32\.data: (is an archive|has|shape)/,
    )
  })

  test('is decompressed only as far as it declares, as a little can become a lot', async () => {
    const large = bytesUrl(zipSync({ 'a.npy': new Uint8Array(2 ** 25) }, { level: 9 }))
    expect(await refused(declaring(large, 100))).toBe(
      'inputs.float32.data: is an archive with more bytes than it declares.',
    )
  })

  test.each([
    ['cut off', 40],
    ['wrong', 71],
  ])('whose compressed bytes are %s is refused', async (_, last) => {
    const damaged = changed(NUMPY.matrix, (entry, bytes) => {
      bytes.fill(255, 59, last)
      entry.setUint32(20, last - 20, true)
    })
    expect(await refused(damaged)).toBe('inputs.float32.data: is an archive that is damaged.')
  })

  test('with another compression method is refused', async () => {
    const method12 = changed(NUMPY.matrix, (entry) => entry.setUint16(10, 12, true))
    expect(await refused(method12)).toBe(
      'inputs.float32.data: is an archive that is compressed by method 12. Send it with method 8 (deflate).',
    )
  })
})

describe('an array in column-major order', () => {
  const cube = typed('uint8', zip(zeros('|u1', '(2, 2097153)', 2 * 2_097_153, true)))

  test('has a limit, which axes of length 1 do not count for', async () => {
    expect(await refusalOf({ uint8: cube })).toBe(
      'inputs.uint8.data: has 4194306 elements in column-major order, of at most 4194304. ' +
        'Send it in row-major order, as numpy.ascontiguousarray returns it.',
    )
    const shape = `(5000000,${'1,'.repeat(63)})`
    const flat = typed('uint8', zip(zeros('|u1', shape, 5_000_000, true)))
    expect(await inputsOf({ uint8: flat })).toMatchObject({
      uint8: { data: { length: 5_000_000 } },
    })
  })

  test('is checked for its type first', async () => {
    expect(await refusalOf({ int8: { ...cube, dtype: 'int8' } })).toBe(
      'inputs.int8.data: has type uint8, but int8 is declared.',
    )
  })

  test('keeps the order of the other axes at axes of length 1', async () => {
    const file = npy('|u1', '(1, 2, 1, 3, 1)', Uint8Array.of(0, 3, 1, 4, 2, 5), true)
    expect(await inputsOf({ uint8: typed('uint8', bytesUrl(file)) })).toEqual({
      uint8: { data: Uint8Array.of(0, 1, 2, 3, 4, 5), shape: [1, 2, 1, 3, 1] },
    })
  })
})

describe('the shape of an array', () => {
  test.each([
    '(-2, -3)',
    '(0.5, 4)',
    '(0x2, 3)',
    '(2e0, 3)',
    '(2,, 3)',
    '(2 3,)',
    '(9007199254740993, 3)',
    '(Infinity, 3)',
  ])('%s is refused in both orders', async (shape) => {
    for (const isTransposed of [false, true]) {
      const data = bytesUrl(zeros('<i8', shape, 48, isTransposed))
      expect(await refusalOf({ int64: typed('int64', data) })).toBe(
        'inputs.int64.data: has a NumPy header whose shape is not a list of whole numbers.',
      )
    }
  })

  test.each(['(2,3)', '( 2 , 3, )', '(2, 3, 1)'])('%s is accepted', async (shape) => {
    const int64 = typed('int64', bytesUrl(zeros('<i8', shape, 48)))
    expect(await inputsOf({ int64 })).toHaveProperty('int64')
  })
})

describe('a limit', () => {
  test('of JSON values holds for each input, and for all together', async () => {
    const many = typed('list', plain(`[${'[],'.repeat(300_000)}1]`))
    expect(await refusalOf({ list: many })).toMatch(
      /^inputs\.list\.data: has too many JSON values\. Send at most /,
    )
    const half = typed('list', json(`[${'1,'.repeat(700_000)}1]`))
    expect(await refusalOf({ float32: half, list: half })).toMatch(
      /^inputs\.list\.data: has too many JSON values\. Send at most 1200000 values/,
    )
  })

  test(
    'of bytes holds for all arrays together, after their conversion',
    { tags: ['slow'] },
    async () => {
      const halves = zip(zeros('<f2', '(8388610,)', 2 * 8_388_610))
      expect(await refusalOf({ float64: typed('float16', halves) })).toBe(
        'inputs.float64.data: has 8388610 elements of type float16, which become float64. ' +
          'The arrays of all inputs then have more than 67108864 bytes. Send less at once.',
      )
      const bytes = typed('uint8', zip(zeros('|u1', '(40000000,)', 40_000_000)))
      expect(await inputsOf({ uint8: bytes })).toHaveProperty('uint8')
      expect(await refusalOf({ uint8: bytes, string: bytes }, 413)).toBe(
        'inputs.string.data: decompresses to more than 27108864 bytes. Send less at once.',
      )
    },
  )

  test('of elements holds for a conversion one by one', { tags: ['slow'] }, async () => {
    const value = typed('int8', `data:;base64,${'AAAA'.repeat(333_334)}`)
    expect(await refusalOf({ int64: value })).toBe(
      'inputs.int64.data: has 1000002 elements of type int8. Send them as int64.',
    )
    expect(await inputsOf({ float32: value })).toEqual({ float32: new Float32Array(1_000_002) })
  })
})
