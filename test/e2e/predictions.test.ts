/** Predictors and predictions from the console of a page, and the bytes behind them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { fetchIn } from '../support/answers.ts'
import { makePatient } from '../support/browser.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page)
})

afterAll(() => site?.close())

const ask = (path: string, body?: unknown) => fetchIn(page, path, body)
const model = '@inorigin/guide'
const tag = '@inorigin/digits'

test('the predictor, with a raw and an encoded slash', async () => {
  for (const path of ['/v1/predictors/@inorigin/digits', '/v1/predictors/@inorigin%2Fdigits']) {
    const predictor = JSON.parse((await ask(path)).text)
    expect(predictor).toMatchObject({
      tag,
      status: 'active',
      access: 'public',
      owner: { username: 'inorigin' },
    })
    expect(predictor.signature.inputs[0]).toMatchObject({ name: 'image', type: 'image' })
  }
})

test('a prediction names resources whose bytes the origin serves', async () => {
  const { status, text } = await ask('/v1/predictions', { tag, clientId: 'test' })
  expect(status).toBe(200)
  const prediction = JSON.parse(text)
  expect(prediction.id).toMatch(/^pred_/)
  expect(prediction).toMatchObject({ tag })
  expect(typeof prediction.configuration).toBe('string')
  expect(new Date(prediction.created).toISOString()).toBe(prediction.created)
  expect(prediction.resources.length).toBeGreaterThan(0)
  for (const { url, type, name } of prediction.resources) {
    expect([typeof type, typeof name]).toEqual(['string', 'string'])
    const got = await page.evaluate(async (address) => {
      const response = await fetch(address)
      const bytes = await response.arrayBuffer()
      const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
      const part = await fetch(address, { headers: { range: 'bytes=2-5' } })
      return {
        etag: response.headers.get('etag'),
        length: response.headers.get('content-length'),
        type: response.headers.get('content-type'),
        size: bytes.byteLength,
        sha256: Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join(''),
        part: [part.status, (await part.arrayBuffer()).byteLength],
      }
    }, url)
    expect(got.etag).toBe(`"${got.sha256}"`)
    expect(got.length).toBe(String(got.size))
    expect(got.type).toBe('application/octet-stream')
    expect(got.part).toEqual([206, 4])
  }
})

test('the same asker gets the same prediction, and an id pins it', async () => {
  const create = async (body: object) =>
    JSON.parse((await ask('/v1/predictions', { tag, ...body })).text)
  const first = await create({ clientId: 'a' })
  expect((await create({ clientId: 'a' })).id).toBe(first.id)
  const other = await create({ clientId: 'b', predictionId: first.id })
  expect(other.id).not.toBe(first.id)
  expect(other.resources).toEqual(first.resources)
  expect(other.configuration).toBe(first.configuration)
  const unknown = await ask('/v1/predictions', { tag, clientId: 'b', predictionId: 'pred_none' })
  expect([unknown.status, JSON.parse(unknown.text).error.param]).toEqual([404, 'predictionId'])
})

test('a language model has predictions too', async () => {
  const { text } = await ask('/v1/predictions', { tag: model, clientId: 'test' })
  const types = JSON.parse(text).resources.map((resource: { type: string }) => resource.type)
  expect(types).toEqual(expect.arrayContaining(['onnx', 'tokenizer', 'config']))
})

test('server.predict runs it, also with a configuration', async () => {
  const result = await page.evaluate(async () => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 200
    const context = canvas.getContext('2d')!
    context.fillStyle = 'white'
    context.fillRect(0, 0, 200, 200)
    context.lineWidth = 18
    context.lineCap = 'round'
    context.beginPath()
    context.moveTo(100, 40)
    context.lineTo(100, 160)
    context.stroke()
    const { server } = globalThis as unknown as { server: Server }
    const body = JSON.stringify({ tag: '@inorigin/digits', clientId: 'configured' })
    const headers = { 'content-type': 'application/json' }
    const { configuration } = await (
      await fetch('/v1/predictions', { method: 'POST', headers, body })
    ).json()
    const phases = new Set<string>()
    const plain = await server.predict(
      '@inorigin/digits',
      { image: canvas },
      {
        onProgress: ({ phase }) => phases.add(phase),
      },
    )
    const same = await server.predict('@inorigin/digits', { image: canvas }, { configuration })
    return { plain, same, phases: [...phases] }
  })
  expect(result.plain.outputs['digit']).toBe('one')
  expect(result.same.outputs).toEqual(result.plain.outputs)
  expect(result.plain.latency).toBeGreaterThan(0)
  expect(result.plain.device).toBe('wasm')
  expect(result.phases.at(-1)).toBe('ready')
})

test('what is no input at all is refused by name too', async () => {
  const seen = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const failing = (name: unknown, inputs: unknown) =>
      server.predict(name as string, inputs as Record<string, unknown>).then(
        () => 'answered',
        (error: { kind: string; message: string }) => `${error.kind} ${error.message}`,
      )
    const digits = '@inorigin/digits'
    const closed = await createImageBitmap(new ImageData(2, 2))
    closed.close()
    return {
      nothing: await failing(digits, undefined),
      nil: await failing(digits, null),
      symbol: await failing(digits, { image: Symbol('image') }),
      element: await failing(digits, { image: document.createElement('div') }),
      closed: await failing(digits, { image: closed }),
      noTag: await failing(undefined, {}),
    }
  })
  const named = expect.stringMatching(/^invalid_request inputs\.image: /)
  expect(seen).toEqual({
    nothing: expect.stringMatching(/^invalid_request inputs: must be an object/),
    nil: expect.stringMatching(/^invalid_request inputs: must be an object/),
    symbol: named,
    element: named,
    closed: named,
    noTag: expect.stringMatching(
      /^invalid_request tag must be a string such as @owner\/name, not undefined/,
    ),
  })
})

test('a wrong input is refused by name', async () => {
  const error = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    return server
      .predict('@inorigin/digits', { image: 'no image' })
      .catch((thrown: Error) => thrown.message)
  })
  expect(error).toContain('inputs.image')
})

test('a resource is never shown as a page', async () => {
  const { text } = await ask('/v1/predictions', { tag: '@inorigin/digits', clientId: 'test' })
  const [{ url }] = JSON.parse(text).resources
  const tab = makePatient(await site.context.newPage())
  const response = await tab.goto(url)
  expect(response?.status()).toBe(403)
  await tab.close()
})
