/**
 * Images through `/v1`, for a model of random weights in the layout of idefics3: in all styles, in files of
 * all kinds, and by URLs on another origin.
 */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { cmykJpeg, gifPixel, pngFile, withOrientation } from '../support/image-files.ts'
import { CHAT, fetchIn, GUIDE, MESSAGES } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const FOLDER = join(import.meta.dirname, '../models/vision')
const TAG = '@me/vision'
const RGB8 = { depth: 8, colorType: 2 } as const
const EVERYDAY = { tags: ['everyday'] }
const SLOW = { tags: ['slow'] }

let hub: Hub
let site: Site
let page: Page
/** Sends an image, to other origins too if its path is below `/open`. */
let images: Server
let origin: string

beforeAll(async () => {
  images = createServer(({ url }, response) => {
    if (url === '/open/large.png') response.setHeader('access-control-allow-origin', '*')
    response.end(png('large'))
  })
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(images.address() as AddressInfo).port}`
  hub = await openHub({ 'me/vision': repositoryOf(FOLDER, 'c'.repeat(40)) })
  site = await openSite()
  page = await site.open()
  const entry = {
    tag: TAG,
    huggingface: 'me/vision',
    host: hub.url,
    capabilities: { imageInput: true },
    imageDetail: 'high' as const,
  }
  await serveIn(page, {
    device: 'wasm',
    catalog: { version: 1, entries: [entry] },
    imageUrls: [`${origin}/open`, `${origin}/closed/`],
  })
})

afterAll(async () => {
  await site?.close()
  await hub?.close()
  images?.closeAllConnections()
  images?.close()
})

const png = (name: string): Buffer => readFileSync(join(FOLDER, `${name}.png`))
const dataUrl = (file: Buffer, type = 'image/png'): string =>
  `data:${type};base64,${file.toString('base64')}`

const post = async (path: string, body: unknown): Promise<{ status: number; body: Answer }> => {
  const { status, text } = await fetchIn(page, path, body)
  return { status, body: JSON.parse(text) as Answer }
}

/** The fields of answers and errors of all styles that the tests read. */
interface Answer {
  usage: {
    prompt_tokens: number
    prompt_tokens_details: { cached_tokens: number }
    input_tokens: number
    cache_read_input_tokens: number
  }
  choices: { message: { content: string } }[]
  content: { text: string }[]
  input_tokens: number
  error: { code: string; param: string; message: string }
}

const chat = (url: string, detail?: string, question = 'the') => ({
  model: TAG,
  temperature: 0,
  max_tokens: 4,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url, detail } },
        { type: 'text', text: question },
      ],
    },
  ],
})

test(
  'a second question about an image finds it in the prefix cache, another image does not',
  EVERYDAY,
  async () => {
    const first = await post(CHAT, chat(dataUrl(png('large')), 'high'))
    expect(first.status).toBe(200)
    const second = await post(CHAT, chat(dataUrl(png('large')), 'high', 'world'))
    // Five tiles of four rows.
    expect(second.body.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(20)
    const other = await post(CHAT, chat(dataUrl(png('other')), 'high'))
    expect(other.body.usage.prompt_tokens_details.cached_tokens).toBeLessThan(10)
    const low = await post(CHAT, chat(dataUrl(png('large')), 'low'))
    expect(first.body.usage.prompt_tokens - low.body.usage.prompt_tokens).toBeGreaterThanOrEqual(16)
  },
)

test('an image is counted as it is used, also in the result of a tool', EVERYDAY, async () => {
  const source = { type: 'base64', media_type: 'image/png', data: png('clear').toString('base64') }
  const image = { type: 'image', source }
  const result = { type: 'tool_result', tool_use_id: 'c1', content: [image] }
  const request = {
    model: TAG,
    messages: [
      { role: 'user', content: [image, { type: 'text', text: 'hello' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'see', input: {} }] },
      { role: 'user', content: [result] },
    ],
  }
  const counted = await post(`${MESSAGES}/count_tokens`, request)
  const answered = await post(MESSAGES, { ...request, max_tokens: 2 })
  const { input_tokens: fresh, cache_read_input_tokens: cached } = answered.body.usage
  expect(counted.body.input_tokens).toBe(fresh + cached)
  const withoutImages = structuredClone(request)
  withoutImages.messages[0]?.content.splice(0, 1)
  const fewer = await post(`${MESSAGES}/count_tokens`, withoutImages)
  expect(counted.body.input_tokens - fewer.body.input_tokens).toBeGreaterThanOrEqual(4)
})

test('a response reads what a page writes as JPEG, WebP and PNG', EVERYDAY, async () => {
  for (const type of ['image/jpeg', 'image/webp', 'image/png']) {
    const part = { type: 'input_image', image_url: dataUrl(await drawn(type)), detail: 'auto' }
    const body = { model: TAG, input: [{ role: 'user', content: [part] }], max_output_tokens: 2 }
    expect((await post('/v1/responses', body)).status).toBe(200)
  }
})

test('a model without images refuses them and names one that takes them', EVERYDAY, async () => {
  const { status, body } = await post(CHAT, { ...chat(dataUrl(png('wide'))), model: GUIDE })
  expect(status).toBe(400)
  expect(body.error.message).toContain(`use ${TAG}`)
})

/** Returns the text and the prompt's tokens of an answer about an image. */
async function see(file: Buffer, type: string) {
  const { status, body } = await post(CHAT, chat(dataUrl(file, type)))
  const text = body.choices[0]?.message.content
  return { status, text, promptTokens: body.usage.prompt_tokens }
}

/** Returns a drawing as the canvas of the page writes it. */
const drawn = (mediaType: string, size: readonly [number, number] = [90, 20]): Promise<Buffer> =>
  fromPage(
    ([type, [width, height]]) => {
      const canvas = document.createElement('canvas')
      Object.assign(canvas, { width, height })
      const context = canvas.getContext('2d')!
      Object.assign(context, { fillStyle: '#c02040' })
      context.fillRect(0, 0, width / 2, height)
      return canvas.toDataURL(type, 1)
    },
    [mediaType, size] as const,
  )

/** Returns the image as the page shows it, in a PNG. */
const asShown = (file: Buffer, mediaType: string): Promise<Buffer> =>
  fromPage(
    async (source) => {
      const image = new Image()
      image.src = source
      await image.decode()
      const canvas = document.createElement('canvas')
      Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight })
      canvas.getContext('2d')!.drawImage(image, 0, 0)
      return canvas.toDataURL()
    },
    dataUrl(file, mediaType),
  )

/** Returns the content of a data URL that a function returns in the page. */
async function fromPage<Arg>(
  write: (given: Arg) => string | Promise<string>,
  given: Arg,
): Promise<Buffer> {
  const url = await page.evaluate(write as (given: unknown) => Promise<string>, given)
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')
}

const flat = ([width, height]: readonly [number, number], color: readonly number[]): Buffer =>
  pngFile([width, height], RGB8, () => Uint8Array.from(Array(width).fill(color).flat() as number[]))

/** Pixels of a gradient as 8 bits; with 16 bits each, its high byte is the same. */
const gradient = (bytes: 1 | 2): Buffer =>
  pngFile([40, 30], { depth: bytes === 1 ? 8 : 16, colorType: 2 }, (y) =>
    Uint8Array.from({ length: 40 * 3 * bytes }, (_, at) => (Math.floor(at / bytes) * 2 + y) % 256),
  )

describe('files', () => {
  test('with the same pixels have one answer', SLOW, async () => {
    const pairs = [
      ['16 bits', gradient(2), 'image/png', gradient(1)],
      ['1 x 1', gifPixel([200, 30, 60]), 'image/gif', flat([1, 1], [200, 30, 60])],
      // Full ink of cyan is a level of 0 in an inverted file; cyan is no red.
      ['CMYK', cmykJpeg([0, 255, 255, 255]), 'image/jpeg', flat([8, 8], [0, 255, 255])],
      ['WebP', await drawn('image/webp'), 'image/webp', await drawn('image/png')],
      ['named PNG', await drawn('image/webp'), 'image/png', await drawn('image/png')],
    ] as const
    for (const [name, file, type, other] of pairs) {
      const first = await see(file, type)
      expect({ name, ...first }).toMatchObject({ name, status: 200 })
      expect({ name, ...(await see(other, 'image/png')) }).toEqual({ name, ...first })
    }
  })

  test('of a JPEG that lies on its side are seen upright', SLOW, async () => {
    const lying = withOrientation(await drawn('image/jpeg', [90, 20]), 6)
    const upright = await see(await asShown(lying, 'image/jpeg'), 'image/png')
    const wide = await see(await drawn('image/png', [90, 20]), 'image/png')
    const seen = await see(lying, 'image/jpeg')
    expect(upright).toMatchObject({ status: 200, text: expect.stringMatching(/./) })
    expect(seen).toEqual(upright)
    // The text around the rows of tiles differs.
    expect(seen.promptTokens).not.toBe(wide.promptTokens)
  })

  test('of 64 megapixels are scaled', SLOW, async () => {
    const row = new Uint8Array(1_000).fill(0b10101010)
    const large = pngFile([8_000, 8_000], { depth: 1, colorType: 0 }, () => row)
    expect(await see(large, 'image/png')).toMatchObject({ status: 200 })
  })

  test('that are no image, not all of one, or too large are a 400 that names them', async () => {
    // The file has one row of them, which is never read.
    const large = pngFile([8_193, 1], { depth: 1, colorType: 0 }, () => new Uint8Array(1_025))
    large.writeUInt32BE(8_193, 20)
    const cases = [
      ['text', 'invalid_image', Buffer.from('This is not an image.'), 'image/png'],
      ['truncated PNG', 'invalid_image', gradient(1).subarray(0, 60), 'image/png'],
      [
        'truncated JPEG',
        'invalid_image',
        (await drawn('image/jpeg')).subarray(0, 100),
        'image/jpeg',
      ],
      [
        'SVG',
        'invalid_image',
        Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
        'image/png',
      ],
      ['more pixels than the limit', 'image_too_large', large, 'image/png'],
    ] as const
    for (const [name, code, bytes, type] of cases) {
      const { status, body } = await post(CHAT, chat(dataUrl(bytes, type)))
      const { code: seen, param, message } = body.error
      expect({ name, status, seen }).toEqual({ name, status: 400, seen: code })
      expect(param).toBe('messages[0].content[0]')
      expect(message).toContain('`messages[0].content[0]`')
    }
  })
})

describe('URLs', () => {
  const ask = (url: string, question: string) => {
    const content = [
      { type: 'image', source: { type: 'url', url } },
      { type: 'text', text: question },
    ]
    return { model: TAG, max_tokens: 2, messages: [{ role: 'user', content }] }
  }

  test('that are allowed are the same image as their bytes', async () => {
    const request = ask(`${origin}/open/large.png`, 'hello')
    const fetched = await post(MESSAGES, request)
    expect(fetched.status).toBe(200)
    const { usage } = fetched.body
    const { model, messages } = request
    const counted = await post(`${MESSAGES}/count_tokens`, { model, messages })
    expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(counted.body.input_tokens)
    const inline = await post(MESSAGES, ask(dataUrl(png('large')), 'world'))
    // The tile of four rows is found in the prefix cache.
    expect(inline.body.usage.cache_read_input_tokens).toBeGreaterThanOrEqual(4)
  })

  test.for([
    ['closed/large.png', 'image_download_failed', 'CORS'],
    ['other/large.png', 'image_url_not_allowed', 'imageUrls'],
  ])('%s is a 400 with the code %s', async ([path, code, words]) => {
    const { status, body } = await post(MESSAGES, ask(`${origin}/${path}`, 'the'))
    expect(status).toBe(400)
    expect(body.error.code).toBe(code)
    expect(body.error.message).toContain('`messages[0].content[0]`')
    expect(body.error.message).toContain(words)
  })

  test('are refused by `serve` unless they are a list of http URLs', async () => {
    const messages = await page.evaluate(async () => {
      const { serve } = globalThis as unknown as typeof import('../../src/index.ts')
      const given = ['https://images.example', ['ftp://images.example']] as unknown as string[][]
      return Promise.all(
        given.map((imageUrls) => serve({ imageUrls }).catch(({ message }: Error) => message)),
      )
    })
    expect(messages).toEqual([
      '`imageUrls` must be an array of URLs.',
      '`imageUrls[0]` must be an http or https URL.',
    ])
  })
})
