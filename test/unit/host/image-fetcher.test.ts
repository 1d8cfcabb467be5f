/** Images that a request names by URL: which are fetched, within which limits, and how they fail. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createImageFetcher } from '../../../src/host/requests/image-fetcher.ts'
import type { GenerationRequest, Image } from '../../../src/types/index.ts'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAIAAAAD/w==', 'base64')
const MEBIBYTE = 2 ** 20

let server: Server
let origin: string
let requested: string[] = []
/** Called when a client of `/a/silent` comes, and when it is gone. */
let onOpened = (): void => undefined
let onClosed = (): void => undefined

const answer: RequestListener = (request, response) => {
  const { url = '' } = request
  requested.push(url)
  if (url === '/a/silent') {
    response.on('close', () => onClosed())
    response.writeHead(200)
    response.write(PNG)
    return onOpened()
  }
  if (url === '/a/moved') return void response.writeHead(302, { location: '/a/one' }).end()
  if (url === '/a/gone') return void response.writeHead(404).end()
  if (url === '/a/text') return void response.end('hello')
  if (url.startsWith('/a/large')) {
    response.write(PNG)
    return void response.end(Buffer.alloc(20 * MEBIBYTE))
  }
  response.end(PNG)
}

beforeAll(async () => {
  server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const remote = (path: string, at = 0): Image => ({
  url: path.startsWith('/') ? `${origin}${path}` : path,
  mediaType: 'application/octet-stream',
  bytes: new Uint8Array(),
  at,
  place: `messages[0].content[${at}]`,
})

const requestOf = (...images: Image[]): GenerationRequest => ({
  model: '@me/vision',
  sampling: {},
  stop: [],
  messages: [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'See.', images },
  ],
})

const never = new AbortController().signal
const fetchAll = (request: GenerationRequest, signal = never, timeoutMs = 30_000) =>
  createImageFetcher([`${origin}/a`], timeoutMs)(request, signal)

describe('allowed URLs', () => {
  test('become bytes with the type of the file, each fetched once', async () => {
    requested = []
    const detailed: Image = { ...remote('/a/one', 2), detail: 'high' }
    const inline: Image = { ...remote('/a/x', 3), mediaType: 'image/gif' }
    delete inline.url
    const given = requestOf(remote('/a/one'), remote('/a/two', 1), detailed, inline)
    const fetched = await fetchAll(given)
    expect(requested.toSorted()).toEqual(['/a/one', '/a/two'])
    const file = { mediaType: 'image/png', bytes: new Uint8Array(PNG) }
    expect(fetched.messages[1]).toEqual({
      role: 'user',
      content: 'See.',
      images: [
        { ...file, at: 0, place: 'messages[0].content[0]' },
        { ...file, at: 1, place: 'messages[0].content[1]' },
        { ...file, at: 2, place: 'messages[0].content[2]', detail: 'high' },
        inline,
      ],
    })
    expect(fetched.messages[0]).toEqual({ role: 'system', content: 'S' })
  })

  test('a request without URLs stays as it is', async () => {
    const given = requestOf()
    expect(await fetchAll(given)).toBe(given)
  })
})

describe('refusals', () => {
  test.for([
    ['/b/one', 'image_url_not_allowed', 'does not fetch'],
    ['/ab/one', 'image_url_not_allowed', 'does not fetch'],
    ['/a/../b/one', 'image_url_not_allowed', 'does not fetch'],
    ['https://example.com/a/one', 'image_url_not_allowed', 'https://example.com/a/one'],
    ['/a/moved', 'image_download_failed', 'redirects'],
    ['/a/gone', 'image_download_failed', 'status 404'],
    ['/a/text', 'invalid_image', 'PNG, JPEG, GIF or WebP'],
  ])('%s is %s', async ([path = '', code, words]) => {
    requested = []
    await expect(fetchAll(requestOf(remote('/a/one'), remote(path, 1)))).rejects.toMatchObject({
      kind: 'invalid_request',
      code,
      param: 'messages[0].content[1]',
      message: expect.stringContaining(words ?? ''),
    })
    // A URL that is not allowed keeps the others from being fetched.
    if (code === 'image_url_not_allowed') expect(requested).toEqual([])
  })

  test('two images of 20 MiB exceed the limit together, not alone', async () => {
    const one = await fetchAll(requestOf(remote('/a/large')))
    const [, message] = one.messages
    const size = PNG.length + 20 * MEBIBYTE
    expect(message?.role === 'user' && message.images?.[0]?.bytes.length).toBe(size)
    const both = requestOf(remote('/a/large1'), remote('/a/large2', 1))
    await expect(fetchAll(both)).rejects.toMatchObject({ code: 'image_too_large' })
  })

  test('more than 100 images are refused before one is fetched', async () => {
    requested = []
    const images = Array.from({ length: 101 }, (_, at) => remote(`/a/${at}`, at))
    await expect(fetchAll(requestOf(...images))).rejects.toMatchObject({ code: 'too_many_images' })
    expect(requested).toEqual([])
  })
})

describe('a server that sends no end', () => {
  const closed = () => new Promise<void>((resolve) => (onClosed = resolve))

  // A busy machine may not even connect in 50 ms, so the end of the connection is for the next tests.
  test('is an error in time', async () => {
    const asked = fetchAll(requestOf(remote('/a/silent')), never, 50)
    await expect(asked).rejects.toMatchObject({
      code: 'image_download_failed',
      message: expect.stringContaining('in time'),
    })
  })

  test('is left when the caller aborts', async () => {
    const gone = closed()
    const caller = new AbortController()
    onOpened = () => caller.abort(new Error('The caller left.'))
    const asked = fetchAll(requestOf(remote('/a/silent')), caller.signal)
    await expect(asked).rejects.toThrow('The caller left.')
    await gone
  })

  test('is left when another image fails', async () => {
    const gone = closed()
    const asked = fetchAll(requestOf(remote('/a/silent'), remote('/a/gone', 1)))
    await expect(asked).rejects.toMatchObject({ message: expect.stringContaining('404') })
    await gone
  })
})
