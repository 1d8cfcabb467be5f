/** Images of all styles: taken as bytes in their place, for models that look at them. */
import { describe, expect, it } from 'vitest'
import { FIRST_IMAGE_ROW, type ImageReader } from '../../../src/engine/images.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { Image } from '../../../src/types/index.ts'
import { scripted } from '../generation/scripted.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'

/** The header of a PNG of 2 x 3 pixels, and a byte that is not text. */
const PNG = Uint8Array.from(atob('iVBORw0KGgoAAAANSUhEUgAAAAIAAAAD/w=='), (character) =>
  character.charCodeAt(0),
)
const DATA = btoa(String.fromCharCode(...PNG))
const URL_OF_PNG = `data:image/png;base64,${DATA}`

const chat = (...content: unknown[]) => chatOf({ messages: [{ role: 'user', content }] })
const message = (...content: unknown[]) => messageOf({ messages: [{ role: 'user', content }] })
const response = (...content: unknown[]) => ({
  model: '@acme/tiny',
  input: [{ role: 'user', content }],
})

const chatPart = (url: unknown = URL_OF_PNG) => ({ type: 'image_url', image_url: { url } })
const block = (source: unknown = { type: 'base64', media_type: 'image/png', data: DATA }) => ({
  type: 'image',
  source,
})
const inputPart = (url: unknown = URL_OF_PNG) => ({ type: 'input_image', image_url: url })

const shown = (at: number, place: string): Image => ({
  mediaType: 'image/png',
  bytes: Uint8Array.from(PNG),
  at,
  place,
})

describe('images', () => {
  it.each([
    [
      CHAT,
      chat({ type: 'text', text: 'One ' }, chatPart(), { type: 'text', text: 'two' }, chatPart()),
      'messages',
    ],
    [
      MESSAGES,
      message({ type: 'text', text: 'One ' }, block(), { type: 'text', text: 'two' }, block()),
      'messages',
    ],
    [
      RESPONSES,
      response(
        { type: 'input_text', text: 'One ' },
        inputPart(),
        { type: 'input_text', text: 'two' },
        inputPart(),
      ),
      'input',
    ],
  ])('of %s keep their place between texts', async (path, body, list) => {
    const { request, ignored } = await askedOf(path, body)
    expect(request.messages).toEqual([
      {
        role: 'user',
        content: 'One two',
        images: [shown(4, `${list}[0].content[1]`), shown(7, `${list}[0].content[3]`)],
      },
    ])
    expect(ignored).toBeNull()
  })

  it.each([
    [CHAT, chat(chatPart('data:image/jpg;base64,/9j='))],
    [CHAT, chat({ type: 'image_url', image_url: 'data:image/jpeg;charset=x;base64,/9j=' })],
    [MESSAGES, message(block({ type: 'base64', media_type: 'image/jpeg', data: '/9j=\n' }))],
    [MESSAGES, message(block({ type: 'url', url: 'DATA:image/JPEG;base64,/9j' }))],
    [RESPONSES, response(inputPart('data:image/jpeg;base64,/9j='))],
  ])('of %s may be written in other ways: %j', async (path, body) => {
    const [first] = (await askedOf(path, body)).request.messages
    expect(first).toMatchObject({
      role: 'user',
      content: '',
      images: [{ mediaType: 'image/jpeg', bytes: Uint8Array.of(0xff, 0xd8) }],
    })
  })

  it.each([
    [
      CHAT,
      chat(chatPart(`data:image/png${';'.repeat(8_000_000)}`)),
      'messages[0].content[0].image_url.url',
    ],
    [
      CHAT,
      chat(chatPart(`data:image/png${';a=b'.repeat(3_000_000)},`)),
      'messages[0].content[0].image_url.url',
    ],
    [
      CHAT,
      chat(chatPart(`data:image/${'p'.repeat(20_000_000)};base64,AAAA`)),
      'messages[0].content[0].image_url.url',
    ],
    [
      RESPONSES,
      response(inputPart(`data:image/png${';'.repeat(8_000_000)}`)),
      'input[0].content[0].image_url',
    ],
    [
      MESSAGES,
      message(block({ type: 'url', url: `data:image/png${';'.repeat(8_000_000)}` })),
      'messages[0].content[0].source.url',
    ],
  ])('of %s in a URL of megabytes that is none are refused', async (path, body, param) => {
    const error = await errorOf(await send(scriptedHost(), path, { body }), 400)
    expect(error).toMatchObject({ code: 'invalid_value', param })
  })

  it.each([
    [CHAT, chat(chatPart('https://example.com/a.png')), 'messages[0].content[0]'],
    [MESSAGES, message(block({ type: 'url', url: 'HTTPS://example.com/a.png' })), 'messages[0]'],
    [RESPONSES, response(inputPart('https://example.com/a.png')), 'input[0].content[0]'],
  ])('of %s by URL are left to the host', async (path, body, place) => {
    const [first] = (await askedOf(path, body)).request.messages
    const image = first?.role === 'user' ? first.images?.[0] : undefined
    expect(image?.url?.toLowerCase()).toBe('https://example.com/a.png')
    expect(image?.bytes).toEqual(new Uint8Array())
    expect(image?.place.startsWith(place)).toBe(true)
  })

  it.each([
    ['low', 'low'],
    ['high', 'high'],
    ['original', 'high'],
    ['auto', undefined],
  ])('say how closely to look: %s', async (detail, expected) => {
    const image_url = { url: URL_OF_PNG, detail }
    const asked = await askedOf(CHAT, chat({ type: 'image_url', image_url }))
    const response_ = await askedOf(RESPONSES, response({ ...inputPart(), detail }))
    for (const { ignored, request } of [asked, response_]) {
      expect(ignored).toBeNull()
      const [first] = request.messages
      expect(first?.role === 'user' && first.images?.[0]?.detail).toBe(expected)
    }
  })

  it('with an unknown detail are refused', async () => {
    const image_url = { url: URL_OF_PNG, detail: 'close' }
    const body = chat({ type: 'image_url', image_url })
    const error = await errorOf(await send(scriptedHost(), CHAT, { body }), 400)
    expect(error.param).toBe('messages[0].content[0].image_url.detail')
  })

  it('in results are shown by the user behind the last of them, in both styles that have them', async () => {
    const result = (id: string, ...content: unknown[]) => ({
      type: 'tool_result',
      tool_use_id: id,
      content,
    })
    const text = { type: 'text', text: 'See' }
    const { request } = await askedOf(
      MESSAGES,
      message({ type: 'text', text: 'And?' }, result('a', text, block()), result('b', block())),
    )
    expect(request.messages).toMatchObject([
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
      output: [{ type: 'input_text', text: 'See' }, inputPart()],
    })
    const input = [output('a'), output('b'), { role: 'user', content: 'And?' }]
    const asked = await askedOf(RESPONSES, { model: '@acme/tiny', input })
    expect(asked.request.messages).toMatchObject([
      { role: 'tool', content: 'See' },
      { role: 'tool', content: 'See' },
      { role: 'user', images: [shown(0, 'input[0].output[1]'), shown(0, 'input[1].output[1]')] },
      { role: 'user', content: 'And?' },
    ])
  })
})

describe('images that cannot be', () => {
  const BASE64 = 'a data: URL in base64 of one of image/png, image/jpeg, image/gif, image/webp'
  const chatUrl = 'messages[0].content[0].image_url.url'
  const source = 'messages[0].content[0].source'

  it.each([
    [CHAT, chatUrl, chat(chatPart(`https://example.com/${'a'.repeat(8_200)}`)), 'https: URL'],
    [CHAT, chatUrl, chat(chatPart('https://')), 'https: URL'],
    [CHAT, chatUrl, chat(chatPart('//example.com/a.png')), 'https: URL'],
    [CHAT, chatUrl, chat(chatPart('data:image/png;base64,')), BASE64],
    [CHAT, chatUrl, chat(chatPart('data:image/png;base64,*')), BASE64],
    [CHAT, chatUrl, chat(chatPart('data:image/png,abcd')), BASE64],
    [CHAT, chatUrl, chat(chatPart('data:image/bmp;base64,abcd')), BASE64],
    [CHAT, chatUrl, chat(chatPart('data:text/plain;base64,abcd')), BASE64],
    [CHAT, chatUrl, chat(chatPart('abcd')), BASE64],
    [CHAT, chatUrl, chat(chatPart('')), BASE64],
    [CHAT, chatUrl, chat(chatPart(null)), 'a URL, not null'],
    [CHAT, 'messages[0].content[0].image_url', chat({ type: 'image_url' }), 'is required'],
    [
      MESSAGES,
      `${source}.url`,
      message(block({ type: 'url', url: 'ftp://example.com/a' })),
      'https: URL',
    ],
    [MESSAGES, source, message(block({ type: 'file', file_id: 'f' })), 'leave it out'],
    [
      MESSAGES,
      `${source}.data`,
      message(block({ type: 'base64', media_type: 'image/png', data: '~' })),
      'an image in base64, not "~"',
    ],
    [
      MESSAGES,
      `${source}.data`,
      message(block({ type: 'base64', media_type: 'image/png' })),
      'is required',
    ],
    [
      MESSAGES,
      `${source}.media_type`,
      message(block({ type: 'base64', media_type: 'image/tiff', data: DATA })),
      'one of image/png',
    ],
    [
      MESSAGES,
      `${source}.type`,
      message(block({ type: 'x' })),
      'one of base64, url, file, not "x"',
    ],
    [MESSAGES, source, message({ type: 'image' }), 'is required'],
    [
      MESSAGES,
      'messages[0].content[0]',
      messageOf({ messages: [{ role: 'assistant', content: [block()] }] }),
      'put images into a message of role user',
    ],
    [
      RESPONSES,
      'input[0].content[0].image_url',
      response(inputPart('blob:https://example.com/a')),
      'https: URL',
    ],
    [
      RESPONSES,
      'input[0].content[0].file_id',
      response({ ...inputPart(), file_id: 'f' }),
      'leave it out',
    ],
  ])('are refused by name: %s %s', async (path, param, body, said) => {
    const host = scriptedHost()
    const error = await errorOf(await send(host, path, { body }), 400)
    expect(error).toMatchObject({ type: 'invalid_request_error', param })
    expect(error.message).toContain(said)
    expect(host.requests).toEqual([])
  })

  /** A host whose engine looks at images, or not. */
  const planning = (images: ImageReader | null) =>
    scriptedHost({
      overrides: {
        async generate(request) {
          const engine = Object.assign(scripted([]), { images })
          await planGeneration(engine, structuredClone(request))
          const [, last] = engine.conversations[0]?.messages ?? []
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
  const history = { role: 'system', content: 'S' }

  it.each([
    [
      CHAT,
      chatOf({ messages: [history, { role: 'user', content: [chatPart()] }] }),
      'messages[1].content[0]',
    ],
    [MESSAGES, { ...message(block()), system: 'S' }, 'messages[0].content[0]'],
    [RESPONSES, { ...response(inputPart()), instructions: 'S' }, 'input[0].content[0]'],
  ])('looked at by an engine are refused by their place in %s', async (path, body, param) => {
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
