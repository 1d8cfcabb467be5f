/** Predictors run from a page and, as predictor clients do, over HTTP through the service worker. */
import { unzipSync, zipSync } from 'fflate'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { MIXED, SLOW, VALUES, valuesCatalog } from '../support/values.ts'

const EVERYDAY = { tags: ['everyday'] }

let site: Site
let page: Page

beforeAll(async () => {
  const pages = { '/catalog.json': JSON.stringify(valuesCatalog(MIXED, SLOW)) }
  site = await openSite({ folders: VALUES, pages })
  page = await site.open()
  await serveIn(page, { catalog: '/catalog.json' })
})

afterAll(() => site?.close())

interface Value {
  data: string | null
  dtype: string
  shape?: number[]
}

interface Prediction {
  id: string
  tag: string
  created: string
  results: Value[] | null
  latency: number
  error: string | null
}

async function remote(tag: string, inputs: Record<string, unknown>): Promise<Prediction> {
  const body = { tag, inputs, acceleration: 'remote_auto', clientId: 'test' }
  const { status, text } = await fetchIn(page, '/v1/predictions/remote', body)
  if (status !== 200) throw new Error(`${status}: ${text}`)
  return JSON.parse(text) as Prediction
}

const bytesOf = ({ data }: Pick<Value, 'data'>): Buffer =>
  Buffer.from(data?.slice(data.indexOf(';base64,') + 8) ?? '', 'base64')

/** The numbers of an array of NumPy. */
function numbersOf<T>(value: Value | undefined, array: new (buffer: ArrayBuffer) => T): T {
  const file = unzipSync(bytesOf(value ?? { data: null }))['arr_0.npy'] ?? new Uint8Array()
  const start = 10 + new DataView(file.buffer, file.byteOffset).getUint16(8, true)
  return new array(file.slice(start).buffer)
}

/** An array as a client of today sends it. */
function npz(descr: string, shape: string, data: ArrayBufferView, dtype: string): Value {
  const head = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`.padEnd(117)
  const magic = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 118, 0)
  const content = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  const file = Buffer.concat([magic, Buffer.from(`${head}\n`), content])
  const archive = Buffer.from(zipSync({ 'arr_0.npy': file })).toString('base64')
  return { data: `data:application/octet-stream;base64,${archive}`, dtype }
}

const text = (words: string): Value => ({
  data: `data:text/plain;base64,${Buffer.from(words).toString('base64')}`,
  dtype: 'string',
})

const list = (items: unknown[]): Value => ({
  data: `data:application/json;base64,${Buffer.from(JSON.stringify(items)).toString('base64')}`,
  dtype: 'list',
})

/** A picture of a one, as the bytes of a file. */
const drawing = (type: string): Promise<string> =>
  page.evaluate((mime) => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 64
    const context = canvas.getContext('2d')!
    context.fillStyle = 'white'
    context.fillRect(0, 0, 64, 64)
    context.fillStyle = 'rgb(0 0 90)'
    context.fillRect(29, 10, 6, 44)
    Object.assign(globalThis, { drawn: canvas })
    return canvas.toDataURL(mime)
  }, type)

describe('over HTTP', () => {
  test('digits: an image in, a label and numbers out', EVERYDAY, async () => {
    for (const mime of ['image/png', 'image/jpeg']) {
      const image = { data: await drawing(mime), dtype: 'image' }
      const prediction = await remote('@inorigin/digits', { image, ink: text('dark') })
      expect(prediction).toMatchObject({ tag: '@inorigin/digits', error: null, logs: null })
      expect(prediction.id).toMatch(/^pred_/)
      expect(prediction.latency).toBeGreaterThan(0)
      const [digit, confidence, scores] = prediction.results ?? []
      expect([digit?.dtype, bytesOf(digit!).toString()]).toEqual(['string', 'one'])
      expect([confidence?.dtype, scores?.dtype]).toEqual(['float32', 'float32'])
      const all = numbersOf(scores, Float32Array)
      expect(all).toHaveLength(10)
      expect(all[1]).toBe(numbersOf(confidence, Float32Array)[0])
    }
  })

  test('edges: an image out, pixel for pixel what the page gets', EVERYDAY, async () => {
    const image = { data: await drawing('image/png'), dtype: 'image' }
    const half = npz('<f4', '', Float32Array.of(0.5), 'float32')
    const inputs = { image, strength: half, mode: text('scharr') }
    const [edges] = (await remote('@inorigin/edges', inputs)).results ?? []
    expect(edges?.dtype).toBe('image')
    const same = await page.evaluate(async (url) => {
      const { server, drawn } = globalThis as unknown as {
        server: Server
        drawn: HTMLCanvasElement
      }
      const given = { image: drawn, strength: 0.5, mode: 'scharr' }
      const { outputs } = await server.predict('@inorigin/edges', given)
      const mine = outputs['edges'] as ImageData
      const bitmap = await createImageBitmap(await (await fetch(url)).blob())
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')!
      context.drawImage(bitmap, 0, 0)
      const theirs = context.getImageData(0, 0, bitmap.width, bitmap.height)
      return {
        size: [theirs.width, theirs.height],
        different: mine.data.filter((value, at) => value !== theirs.data[at]).length,
        marks: mine.data.filter((value, at) => at % 4 === 0 && value > 60).length,
      }
    }, edges?.data ?? '')
    expect(same).toMatchObject({ size: [64, 64], different: 0 })
    expect(same.marks).toBeGreaterThan(50)
  })

  test('a graph nobody has seen: every kind of value both ways', EVERYDAY, async () => {
    const { results } = await remote('@values/mixed', {
      matrix: npz('<f4', '2, 3', Float32Array.of(1, 2, 3, 4, 5, 6), 'float32'),
      // As clients send a 2, whatever it is for.
      scale: npz('<i4', '', Int32Array.of(2), 'int32'),
      count: npz('<i8', '', BigInt64Array.of(2n ** 60n), 'int64'),
      flag: npz('|b1', '', Uint8Array.of(1), 'bool'),
      texts: list(['a', 'é']),
    })
    const kinds = ['float32', 'float32', 'float16', 'float64', 'int64', 'bool', 'list']
    expect(results?.map(({ dtype }) => dtype)).toEqual(kinds)
    const [scaled, total, half, double, next, opposite, said] = results ?? []
    expect(numbersOf(scaled, Float32Array)).toEqual(Float32Array.of(2, 4, 6, 8, 10, 12))
    expect(numbersOf(total, Float32Array)).toEqual(Float32Array.of(42))
    expect(numbersOf(half, Uint16Array)[0]).toBe(0x4000)
    expect(numbersOf(double, Float64Array)[5]).toBe(12)
    expect(numbersOf(next, BigInt64Array)).toEqual(BigInt64Array.of(2n ** 60n + 1n))
    expect(numbersOf(opposite, Uint8Array)).toEqual(Uint8Array.of(0))
    expect(JSON.parse(bytesOf(said!).toString())).toEqual(['a', 'é'])
  })

  test('bytes with a shape are answered by bytes with a shape', async () => {
    const raw = (data: ArrayBufferView, dtype: string, shape: number[]) => ({
      data: `data:;base64,${Buffer.from(data.buffer).toString('base64')}`,
      dtype,
      shape,
    })
    const { results } = await remote('@values/mixed', {
      matrix: raw(Float32Array.of(1, 2, 3), 'float32', [1, 3]),
      count: raw(BigInt64Array.of(1n), 'int64', []),
      texts: ['plain'],
    })
    expect(results?.[0]).toMatchObject({ dtype: 'float32', shape: [1, 3] })
    expect(new Float32Array(new Uint8Array(bytesOf(results![0]!)).buffer)).toEqual(
      Float32Array.of(1, 2, 3),
    )
    expect(results?.[4]?.shape).toEqual([])
  })

  test(
    'a flood is told to come again, and what was taken is answered',
    { tags: ['slow'] },
    async () => {
      const picture = await drawing('image/png')
      const answers = await page.evaluate(async (image) => {
        const init = {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ tag: '@values/slow', inputs: { picture: image } }),
        }
        const ask = async () => {
          const response = await fetch('/v1/predictions/remote', init)
          const { results } = (await response.json()) as { results?: unknown[] }
          return [response.status, results?.length ?? 0, response.headers.get('retry-after')]
        }
        return Promise.all(Array.from({ length: 80 }, ask))
      }, picture)
      const kinds = answers.map((answer) => answer.join())
      expect([...new Set(kinds)].toSorted()).toEqual(['200,1,', '429,0,2'])
      expect(kinds.filter((kind) => kind.startsWith('200')).length).toBeGreaterThanOrEqual(64)
    },
  )

  test('what is wrong is said by name, in the shape that clients read, and nothing is fetched', async () => {
    const image = { data: await drawing('image/png'), dtype: 'image' }
    const cases: [string, Record<string, unknown>, number, string][] = [
      ['@inorigin/digits', {}, 400, 'inputs.image: is required.'],
      [
        '@inorigin/digits',
        { image, ink: text('red') },
        400,
        'inputs.ink: must be one of auto, dark, light',
      ],
      [
        '@inorigin/digits',
        { image: { ...image, data: `${site.url}/secret.png` } },
        400,
        'inputs.image.data: is a URL that begins with http:',
      ],
      [
        '@inorigin/digits',
        { image: { ...text('no image'), dtype: 'image' } },
        400,
        'inputs.image: this is not an image',
      ],
      [
        '@inorigin/edges',
        { image, strength: 17 },
        400,
        'inputs.strength: must be from 0 to 16, not 17.',
      ],
      [
        '@values/mixed',
        { matrix: [[1, 2]], count: 1, texts: 'a' },
        400,
        'inputs.matrix: must have the shape [any, 3]',
      ],
      [
        '@values/mixed',
        { matrix: { data: '', dtype: 'complex64' } },
        400,
        'inputs.matrix.dtype: "complex64" is not supported',
      ],
      ['@inorigin/none', {}, 404, '@inorigin/none'],
      ['@inorigin/guide', {}, 404, '@inorigin/guide is a language model'],
    ]
    for (const [tag, inputs, status, message] of cases) {
      const answer = await fetchIn(page, '/v1/predictions/remote', {
        tag,
        inputs,
        stream: status === 404,
      })
      const { errors } = JSON.parse(answer.text) as { errors: [{ message: string }] }
      expect([answer.status, errors[0].message]).toEqual([status, expect.stringContaining(message)])
    }
    expect(site.requests.filter((request) => request.includes('secret'))).toEqual([])
  })
})

describe('from the page', () => {
  test('a handle knows its signature and runs', async () => {
    const found = await page.evaluate(async () => {
      const { server } = globalThis as unknown as { server: Server }
      const { tag, signature, predict } = await server.predictor('@values/mixed')
      const { outputs, device } = await predict({
        matrix: { data: Float32Array.of(1, 2, 3), shape: [1, 3] },
        count: 2n ** 60n,
        texts: ['a'],
      })
      const unknown = await server
        .predictor('@values/none')
        .catch((error: { kind: string }) => error.kind)
      const model = await server
        .predictor('@inorigin/guide')
        .catch((error: { kind: string }) => error.kind)
      return { tag, signature, outputs, device, unknown, model }
    })
    expect(found).toMatchObject({
      tag: '@values/mixed',
      signature: MIXED.signature,
      device: 'wasm',
      outputs: {
        scaled: { data: Float32Array.of(1, 2, 3), shape: [1, 3] },
        total: 6,
        next: 2n ** 60n + 1n,
        opposite: true,
        said: 'a',
      },
      unknown: 'not_found',
      model: 'not_found',
    })
  })

  test('giving up ends predictions before and while they run, and the next one is answered', async () => {
    const seen = await page.evaluate(async () => {
      const { server } = globalThis as unknown as { server: Server }
      const slow = await server.predictor('@values/slow')
      const inputs = { picture: new ImageData(224, 224) }
      await slow.predict(inputs)
      const kinds: string[] = []
      const many = Array.from({ length: 400 }, () => {
        const quitter = new AbortController()
        const done = slow
          .predict(inputs, { signal: quitter.signal })
          .catch((error: { kind: string }) => {
            kinds.push(error.kind)
          })
        return { quitter, done }
      })
      await many[0]?.done
      for (const { quitter } of many) quitter.abort()
      await Promise.all(many.map(({ done }) => done))
      const { latency } = await slow.predict(inputs)
      return { kinds: [...new Set(kinds)], count: kinds.length, latency }
    })
    expect(seen.kinds).toEqual(['aborted'])
    expect(seen.count).toBeGreaterThan(300)
    expect(seen.latency).toBeGreaterThan(0)
  })

  test("what is given stays the giver's", async () => {
    const sizes = await page.evaluate(async () => {
      const { server, drawn } = globalThis as unknown as {
        server: Server
        drawn: HTMLCanvasElement
      }
      const bitmap = await createImageBitmap(drawn)
      const frame = new VideoFrame(drawn, { timestamp: 0 })
      const data = Float32Array.of(1, 2, 3)
      const answers: unknown[] = []
      for (const image of [drawn, bitmap, frame, bitmap]) {
        answers.push((await server.predict('@inorigin/digits', { image })).outputs['digit'])
      }
      await server.predict('@values/mixed', {
        matrix: { data, shape: [1, 3] },
        count: 1,
        texts: 'a',
      })
      const left = [bitmap.width, frame.codedWidth, data.length]
      frame.close()
      return { answers, left }
    })
    expect(sizes).toEqual({ answers: ['one', 'one', 'one', 'one'], left: [64, 64, 3] })
  })
})
