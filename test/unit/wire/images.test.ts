/** Images in each wire style, for models that accept them. */
import { describe, expect, it } from 'vitest'
import { FIRST_IMAGE_ROW, type ImageReader } from '../../../src/engine/images.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { scripted } from '../generation/scripted.ts'
import { asks, REQUIRED, SAME, testFields, UNSUPPORTED } from './field-table.ts'
import type { Row } from './field-table.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf } from './scripts.ts'
import { NOT_HERE } from './shared-fields.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'

/** The header of a PNG of 2 x 3 pixels, and a byte that is not text. */
const DATA = 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAAD/w=='
const PNG = Uint8Array.from(atob(DATA), (character) => character.charCodeAt(0))
const URL_OF_PNG = `data:image/png;base64,${DATA}`

const chat = (...content: unknown[]) => chatOf({ messages: [{ role: 'user', content }] })
const message = (...content: unknown[]) => messageOf({ messages: [{ role: 'user', content }] })
const response = (...content: unknown[]) => ({
  model: '@acme/tiny',
  input: [{ role: 'user', content }],
})
const chatPart = { type: 'image_url', image_url: { url: URL_OF_PNG } }
const source = { type: 'base64', media_type: 'image/png', data: DATA }
const block = { type: 'image', source }
const inputPart = { type: 'input_image', image_url: URL_OF_PNG }
const text = (value: string) => ({ type: 'text', text: value })
const inputText = (value: string) => ({ type: 'input_text', text: value })

const shown = (at: number, place: string) => ({
  mediaType: 'image/png',
  bytes: Uint8Array.from(PNG),
  at,
  place,
})
const asksImage = (part: object) => asks({ messages: [{ content: '', images: [part] }] })
const JPEG = asksImage({ mediaType: 'image/jpeg', bytes: Uint8Array.of(0xff, 0xd8) })

const BAD_URL =
  'a data: URL in base64 of one of image/png, image/jpeg, image/gif, image/webp, or an https: URL, not'
const TYPES = 'one of image/png, image/jpeg, image/gif, image/webp, not'
const remote = 'https://example.com/a.png'

/** A URL of any style, and its detail where the style has one. */
const urlRows = (field: string): Row[] => [
  [field, 'data:image/jpeg;base64,/9j=', JPEG],
  [field, 'data:image/jpg;base64,/9j=', JPEG],
  [field, 'DATA:image/JPEG;charset=x;base64,/9j', JPEG],
  [field, remote, asksImage({ url: remote, bytes: new Uint8Array() })],
  [field, remote.toUpperCase(), asksImage({ url: remote.toUpperCase() })],
  [field, 'https://', `${BAD_URL} "https://"`],
  [field, '//example.com/a.png', `${BAD_URL} "//example.com/a.png"`],
  [field, 'ftp://example.com/a', `${BAD_URL} "ftp://example.com/a"`],
  [field, 'blob:https://example.com/a', `${BAD_URL} "blob:https://example.com/a"`],
  [field, 'data:image/png;base64,', `${BAD_URL} "data:image/png;base64,"`],
  [field, 'data:image/png;base64,*', `${BAD_URL} "data:image/png;base64,*"`],
  [field, 'data:image/png,abcd', `${BAD_URL} "data:image/png,abcd"`],
  [field, 'data:image/bmp;base64,abcd', `${BAD_URL} "data:image/bmp;base64,abcd"`],
  [field, 'data:text/plain;base64,abcd', `${BAD_URL} "data:text/plain;base64,abcd"`],
  [field, 'abcd', `${BAD_URL} "abcd"`],
  [field, '', `${BAD_URL} ""`],
  [field, null, 'a URL, not null'],
]
const detailRows = (field: string): Row[] => [
  [field, 'low', asksImage({ detail: 'low' })],
  [field, 'high', asksImage({ detail: 'high' })],
  [field, 'original', asksImage({ detail: 'high' })],
  [field, 'auto', SAME],
  [field, 'close', 'one of auto, low, high, original, not "close"'],
]

const PART = 'messages[0].content[0]'
const CHAT_ROWS: Row[] = [
  ...urlRows(`${PART}.image_url.url`),
  ...detailRows(`${PART}.image_url.detail`),
  [`${PART}.image_url`, URL_OF_PNG, SAME],
  [`${PART}.image_url`, undefined, REQUIRED],
]
const MESSAGE_ROWS: Row[] = [
  ...urlRows(`${PART}.source.url`).map(([field, url, verdict]): Row => [
    `${PART}.source`,
    { type: 'url', url },
    verdict,
    typeof verdict === 'string' ? field : undefined,
  ]),
  [`${PART}.source`, { type: 'base64', media_type: 'image/jpeg', data: '/9j=\n' }, JPEG],
  [`${PART}.source`, { type: 'file', file_id: 'f' }, 'unsupported; leave it out'],
  [`${PART}.source`, undefined, REQUIRED],
  [`${PART}.source.data`, '~', 'an image in base64, not "~"'],
  [`${PART}.source.data`, undefined, REQUIRED],
  [`${PART}.source.media_type`, 'image/tiff', `${TYPES} "image/tiff"`],
  [`${PART}.source.type`, 'x', 'one of base64, url, file, not "x"'],
  ['messages[0].role', 'assistant', NOT_HERE, PART],
]
const RESPONSE_ROWS: Row[] = [
  ...urlRows('input[0].content[0].image_url'),
  ...detailRows('input[0].content[0].detail'),
  ['input[0].content[0].file_id', 'f', UNSUPPORTED],
]

describe('an image', () => {
  testFields(CHAT, chat(chatPart), CHAT_ROWS)
  testFields(MESSAGES, message(block), MESSAGE_ROWS)
  testFields(RESPONSES, response(inputPart), RESPONSE_ROWS)

  it.each([
    ['many semicolons', `data:image/png${';'.repeat(8_000_000)}`],
    ['many parameters', `data:image/png${';a=b'.repeat(3_000_000)},`],
    ['a long type', `data:image/${'p'.repeat(20_000_000)};base64,AAAA`],
    ['a long path', `https://example.com/${'a'.repeat(8_200)}`],
  ])('is refused with a URL of %s', async (_, url) => {
    const body = chat({ type: 'image_url', image_url: { url } })
    const error = await errorOf(await send(scriptedHost(), CHAT, { body }), 400)
    expect(error).toMatchObject({ code: 'invalid_value', param: `${PART}.image_url.url` })
  })

  it.each([
    [CHAT, chat(text('One '), chatPart, text('two'), chatPart), 'messages'],
    [MESSAGES, message(text('One '), block, text('two'), block), 'messages'],
    [RESPONSES, response(inputText('One '), inputPart, inputText('two'), inputPart), 'input'],
  ])('keeps its place between texts in %s', async (path, body, list) => {
    const { request, ignored } = await askedOf(path, body)
    const images = [shown(4, `${list}[0].content[1]`), shown(7, `${list}[0].content[3]`)]
    expect(request.messages).toEqual([{ role: 'user', content: 'One two', images }])
    expect(ignored).toBeNull()
  })

  it('in a result of a tool moves to a user message after the last result', async () => {
    const result = (id: string, ...content: unknown[]) => ({
      type: 'tool_result',
      tool_use_id: id,
      content,
    })
    const body = message(text('And?'), result('a', text('See'), block), result('b', block))
    expect((await askedOf(MESSAGES, body)).request.messages).toMatchObject([
      { role: 'tool', content: 'See' },
      { role: 'tool', content: '' },
      {
        role: 'user',
        content: 'And?',
        images: [
          shown(0, 'messages[0].content[1].content[1]'),
          shown(0, 'messages[0].content[2].content[0]'),
        ],
      },
    ])
    const output = (call_id: string) => ({
      type: 'function_call_output',
      call_id,
      output: [inputText('See'), inputPart],
    })
    const input = [output('a'), output('b'), { role: 'user', content: 'And?' }]
    const { request } = await askedOf(RESPONSES, { model: '@acme/tiny', input })
    expect(request.messages).toMatchObject([
      { role: 'tool', content: 'See' },
      { role: 'tool', content: 'See' },
      { role: 'user', images: [shown(0, 'input[0].output[1]'), shown(0, 'input[1].output[1]')] },
      { role: 'user', content: 'And?' },
    ])
  })

  it.each([
    [CHAT, { ...chat(chatPart), seed: 1 }, PART],
    [MESSAGES, { ...message(block), system: 'S' }, PART],
    [RESPONSES, { ...response(inputPart), instructions: 'S' }, 'input[0].content[0]'],
  ])('is refused by its place in %s where the model accepts none', async (path, body, param) => {
    /** A host whose engine accepts images, or not. */
    const planning = (images: ImageReader | null) =>
      scriptedHost({
        overrides: {
          async generate(request) {
            const engine = Object.assign(scripted([]), { images })
            await planGeneration(engine, structuredClone(request))
            const last = engine.conversations[0]?.messages.at(-1)
            expect(last).toMatchObject({ images: [{ bytes: Uint8Array.from(PNG) }] })
            throw new Error('It came as far as the engine.')
          },
        },
      })
    const reader: ImageReader = {
      placeholder: '<image>',
      describe: (input) => ({ pieces: [], firstRow: FIRST_IMAGE_ROW, rowCount: 0, input }),
      assertReadable: async () => undefined,
      retain: () => () => undefined,
    }
    const error = await errorOf(await send(planning(null), path, { body }), 400)
    expect(error).toMatchObject({
      param,
      code: 'unsupported_parameter',
      details: { unsupported: [param] },
    })
    expect(error.message).toContain(`\`${param}\` is an image, but @acme/tiny does not accept`)
    const taken = await errorOf(await send(planning(reader), path, { body }), 500)
    expect(taken.message).toBe('It came as far as the engine.')
  })
})
