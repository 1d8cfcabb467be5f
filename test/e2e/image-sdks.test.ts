/**
 * Image files of all kinds, sent by the official SDKs and the AI SDK: an answer or a clear refusal.
 *
 * @module-tag slow
 */
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { cmykJpeg, gifPixel, pngFile, withOrientation } from '../support/image-files.ts'
import { bundleSdks } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  server: import('../../src/index.ts').Server
  sdks: typeof import('../support/sdks-entry.ts')
  ask: Record<string, (data: string, mediaType: string) => Promise<Outcome>>
}

/** What a client received. */
interface Outcome {
  status: number
  code?: string | null
  message?: string
  text?: string
  promptTokens?: number | undefined
}

const FOLDER = join(import.meta.dirname, '../models/vision')
const RGB8 = { depth: 8, colorType: 2 } as const
const CLIENTS = ['openai', 'anthropic', 'ai']

let hub: Hub
let site: Site
let page: Page

beforeAll(async () => {
  hub = await openHub({ 'me/vision': repositoryOf(FOLDER, 'c'.repeat(40)) })
  site = await openSite({ pages: { '/sdks.js': await bundleSdks() } })
  page = await site.open()
  const entry = {
    tag: '@me/vision',
    huggingface: 'me/vision',
    host: hub.url,
    capabilities: { imageInput: true },
    imageDetail: 'high' as const,
  }
  await serveIn(page, { device: 'wasm', catalog: { version: 1, entries: [entry] } })
  await page.addScriptTag({ url: '/sdks.js' })
  await page.evaluate(defineClients)
})

afterAll(async () => {
  await site?.close()
  await hub?.close()
})

/** Defines `ask` in the page: one question about an image by each client, which does not retry. */
function defineClients(): void {
  const { server, sdks } = globalThis as unknown as InPage
  const model = '@me/vision'
  const options = { apiKey: 'none', dangerouslyAllowBrowser: true, maxRetries: 0 }
  const openai = new sdks.OpenAI({ baseURL: server.baseURL, ...options })
  const anthropic = new sdks.Anthropic({ baseURL: server.origin, ...options })
  const compatible = sdks.createOpenAICompatible({ baseURL: server.baseURL, name: 'page' })
  const text = 'the'
  const refusal = (status: number, error: { code?: string | null; message?: string }): Outcome => ({
    status,
    code: error.code ?? null,
    message: error.message ?? '',
  })
  const ask: InPage['ask'] = {
    async openai(data, mediaType) {
      const image_url = { url: `data:${mediaType};base64,${data}` }
      const content = [
        { type: 'image_url' as const, image_url },
        { type: 'text' as const, text },
      ]
      const messages = [{ role: 'user' as const, content }]
      try {
        const body = { model, messages, temperature: 0, max_completion_tokens: 8 }
        const { choices, usage } = await openai.chat.completions.create(body)
        const written = choices[0]?.message.content ?? ''
        return { status: 200, text: written, promptTokens: usage?.prompt_tokens }
      } catch (error) {
        if (error instanceof sdks.OpenAI.APIError) return refusal(error.status, error)
        throw error
      }
    },
    async anthropic(data, mediaType) {
      const source = { type: 'base64' as const, media_type: mediaType as 'image/png', data }
      const content = [
        { type: 'image' as const, source },
        { type: 'text' as const, text },
      ]
      const messages = [{ role: 'user' as const, content }]
      try {
        // The SDK's types no longer have the temperature, which the endpoint takes.
        const body = { model, messages, max_tokens: 8, temperature: 0 }
        const answer = await anthropic.messages.create(body)
        const { input_tokens, cache_read_input_tokens } = answer.usage
        const [block] = answer.content
        const written = block?.type === 'text' ? block.text : ''
        const promptTokens = input_tokens + (cache_read_input_tokens ?? 0)
        return { status: 200, text: written, promptTokens }
      } catch (error) {
        if (!(error instanceof sdks.Anthropic.APIError)) throw error
        return refusal(error.status, (error.error as { error: Outcome }).error)
      }
    },
    async ai(data, mediaType) {
      const image = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
      const content = [
        { type: 'image' as const, image, mediaType },
        { type: 'text' as const, text },
      ]
      try {
        const answer = await sdks.generateText({
          model: compatible(model),
          messages: [{ role: 'user', content }],
          temperature: 0,
          maxOutputTokens: 8,
          maxRetries: 0,
        })
        return { status: 200, text: answer.text, promptTokens: answer.usage.inputTokens }
      } catch (error) {
        if (!(error instanceof sdks.APICallError)) throw error
        const body = JSON.parse(error.responseBody ?? '{}') as { error: Outcome }
        return refusal(error.statusCode ?? 0, body.error)
      }
    },
  }
  Object.assign(globalThis, { ask })
}

const ask = (client: string, file: Buffer, mediaType: string): Promise<Outcome> =>
  page.evaluate(([name, data, type]) => (globalThis as unknown as InPage).ask[name]!(data, type), [
    client,
    file.toString('base64'),
    mediaType,
  ] as const)

/** Returns a drawing as the canvas of the page writes it. */
async function drawn(mediaType: string, [width, height]: readonly number[] = [90, 20]) {
  const url = await page.evaluate(
    ([type, w, h]) => {
      const canvas = document.createElement('canvas')
      Object.assign(canvas, { width: w, height: h })
      const context = canvas.getContext('2d')!
      Object.assign(context, { fillStyle: '#c02040' })
      context.fillRect(0, 0, w / 2, h)
      return canvas.toDataURL(type, 1)
    },
    [mediaType, width ?? 0, height ?? 0] as const,
  )
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')
}

const flat = ([width, height]: readonly [number, number], color: readonly number[]): Buffer =>
  pngFile([width, height], RGB8, () => Uint8Array.from(Array(width).fill(color).flat() as number[]))

/** Pixels of a gradient as 8 bits; with 16 bits each, its high byte is the same. */
const gradient = (bytes: 1 | 2): Buffer =>
  pngFile([40, 30], { depth: bytes === 1 ? 8 : 16, colorType: 2 }, (y) =>
    Uint8Array.from({ length: 40 * 3 * bytes }, (_, at) => (Math.floor(at / bytes) * 2 + y) % 256),
  )

test.for(CLIENTS)('%s: the same pixels in two files have one answer', async (client) => {
  const pairs = [
    ['16 bits', gradient(2), 'image/png', gradient(1), 'image/png'],
    ['1 x 1', gifPixel([200, 30, 60]), 'image/gif', flat([1, 1], [200, 30, 60]), 'image/png'],
    // Full ink of cyan is a level of 0 in an inverted file; cyan is no red.
    ['CMYK', cmykJpeg([0, 255, 255, 255]), 'image/jpeg', flat([8, 8], [0, 255, 255]), 'image/png'],
    ['WebP', await drawn('image/webp'), 'image/webp', await drawn('image/png'), 'image/png'],
    ['named PNG', await drawn('image/webp'), 'image/png', await drawn('image/png'), 'image/png'],
  ] as const
  for (const [name, file, type, other, otherType] of pairs) {
    const first = await ask(client, file, type)
    expect({ name, ...first }).toMatchObject({ name, status: 200 })
    expect({ name, ...(await ask(client, other, otherType)) }).toEqual({ name, ...first })
  }
})

/** Returns the image as the page shows it, in a PNG. */
async function asShown(file: Buffer, mediaType: string): Promise<Buffer> {
  const url = await page.evaluate(
    async (source) => {
      const image = new Image()
      image.src = source
      await image.decode()
      const canvas = document.createElement('canvas')
      Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight })
      canvas.getContext('2d')!.drawImage(image, 0, 0)
      return canvas.toDataURL()
    },
    `data:${mediaType};base64,${file.toString('base64')}`,
  )
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')
}

test.for(CLIENTS)('%s: a JPEG that lies on its side is seen upright', async (client) => {
  const lying = withOrientation(await drawn('image/jpeg', [90, 20]), 6)
  const upright = await ask(client, await asShown(lying, 'image/jpeg'), 'image/png')
  const wide = await ask(client, await drawn('image/png', [90, 20]), 'image/png')
  const seen = await ask(client, lying, 'image/jpeg')
  expect(upright).toMatchObject({ status: 200, text: expect.stringMatching(/./) })
  expect(seen).toEqual(upright)
  // The text around the rows of tiles differs.
  expect(seen.promptTokens).not.toBe(wide.promptTokens)
})

test.for(CLIENTS)('%s: 64 megapixels are scaled', { timeout: 120_000 }, async (client) => {
  const row = new Uint8Array(1_000).fill(0b10101010)
  const large = pngFile([8_000, 8_000], { depth: 1, colorType: 0 }, () => row)
  expect(await ask(client, large, 'image/png')).toMatchObject({ status: 200 })
})

test.for(CLIENTS)('%s: more pixels than the limit are a 400, by the header', async (client) => {
  // The file has one row of them, which is never read.
  const rows = pngFile([8_193, 1], { depth: 1, colorType: 0 }, () => new Uint8Array(1_025))
  rows.writeUInt32BE(8_193, 20)
  const outcome = await ask(client, rows, 'image/png')
  expect(outcome).toMatchObject({ status: 400, code: 'image_too_large' })
  expect(outcome.message).toContain('`messages[0].content[0]`')
})

test.for(CLIENTS)('%s: a file that cannot be read is a 400 that names it', async (client) => {
  const jpeg = await drawn('image/jpeg')
  const files = [
    ['truncated PNG', gradient(1).subarray(0, 60), 'image/png'],
    ['truncated JPEG', jpeg.subarray(0, 100), 'image/jpeg'],
    ['text', Buffer.from('This is not an image.'), 'image/png'],
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'image/png'],
  ] as const
  for (const [name, file, type] of files) {
    const outcome = await ask(client, file, type)
    expect({ name, ...outcome }).toMatchObject({ name, status: 400, code: 'invalid_image' })
    expect(outcome.message).toContain('`messages[0].content[0]`')
  }
})
