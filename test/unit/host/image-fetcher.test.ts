/** Images that a request names by URL: which are fetched, within which limits, and how they fail. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createImageFetcher } from '../../../src/host/requests/image-fetcher.ts'
import type { GenerationRequest, Image } from '../../../src/types/index.ts'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAIAAAAD/w==', 'base64')
const LARGE = Buffer.concat([PNG, Buffer.alloc(20 * 2 ** 20)])

let server: Server
let origin: string
let requested: string[] = []
/** Called when a client of `/a/silent` comes, and when it is gone. */
let onOpened = (): void => undefined
let onClosed = (): void => undefined

beforeAll(async () => {
  server = createServer(({ url = '' }, response) => {
    requested.push(url)
    if (url === '/a/moved') return void response.writeHead(302, { location: '/a/one' }).end()
    if (url === '/a/gone') return void response.writeHead(404).end()
    if (url === '/a/text') return void response.end('hello')
    if (url !== '/a/silent') return void response.end(url.startsWith('/a/large') ? LARGE : PNG)
    response.on('close', () => onClosed())
    response.writeHead(200)
    response.write(PNG)
    onOpened()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  requested = []
})

const remote = (path: string, at = 0): Image => ({
  url: path.startsWith('/') ? `${origin}${path}` : path,
  mediaType: 'application/octet-stream',
  bytes: new Uint8Array(),
  at,
  place: `messages[0].content[${at}]`,
})

const requestOf = (images?: Image[]): GenerationRequest => ({
  model: '@me/vision',
  sampling: {},
  stop: [],
  messages: [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'See.', images },
  ],
})

const never = new AbortController().signal
const fetchAll = (images: Image[] | undefined, signal = never, timeoutMs = 30_000) =>
  createImageFetcher([`${origin}/a`], timeoutMs)(requestOf(images), signal)

describe('images of allowed URLs', () => {
  test('become bytes with the type of the file, each fetched once', async () => {
    const detailed: Image = { ...remote('/a/one', 2), detail: 'high' }
    const { url: _, ...inline } = { ...remote('/a/x', 3), mediaType: 'image/gif' as const }
    const fetched = await fetchAll([remote('/a/one'), remote('/a/two', 1), detailed, inline])
    expect(requested.toSorted()).toEqual(['/a/one', '/a/two'])
    const file = { mediaType: 'image/png', bytes: new Uint8Array(PNG) }
    const images = [
      { ...file, at: 0, place: 'messages[0].content[0]' },
      { ...file, at: 1, place: 'messages[0].content[1]' },
      { ...file, at: 2, place: 'messages[0].content[2]', detail: 'high' },
      inline,
    ]
    expect(fetched.messages).toEqual([
      { role: 'system', content: 'S' },
      { role: 'user', content: 'See.', images },
    ])
  })

  test('may have 20 MiB each, but not together', async () => {
    const [, message] = (await fetchAll([remote('/a/large')])).messages
    expect(message?.role === 'user' && message.images?.[0]?.bytes.length).toBe(LARGE.length)
    await expect(fetchAll([remote('/a/large1'), remote('/a/large2', 1)])).rejects.toMatchObject({
      code: 'image_too_large',
    })
  })

  test('are at most 100, which is checked before one is fetched', async () => {
    const images = Array.from({ length: 101 }, (_, at) => remote(`/a/${at}`, at))
    await expect(fetchAll(images)).rejects.toMatchObject({ code: 'too_many_images' })
    expect(requested).toEqual([])
  })
})

test('a request without URLs is not changed', async () => {
  const given = requestOf([])
  expect(await createImageFetcher([])(given, never)).toBe(given)
})

test.each([
  ['/b/one', 'image_url_not_allowed', 'does not fetch'],
  ['/ab/one', 'image_url_not_allowed', 'does not fetch'],
  ['/a/../b/one', 'image_url_not_allowed', 'does not fetch'],
  ['https://example.com/a/one', 'image_url_not_allowed', 'https://example.com/a/one'],
  ['/a/moved', 'image_download_failed', 'redirects'],
  ['/a/gone', 'image_download_failed', 'status 404'],
  ['/a/text', 'invalid_image', 'PNG, JPEG, GIF or WebP'],
])('%s is %s', async (path, code, words) => {
  await expect(fetchAll([remote('/a/one'), remote(path, 1)])).rejects.toMatchObject({
    kind: 'invalid_request',
    code,
    param: 'messages[0].content[1]',
    message: expect.stringContaining(words),
  })
  // A URL that is not allowed keeps the others from being fetched.
  if (code === 'image_url_not_allowed') expect(requested).toEqual([])
})

describe('a server that sends no end', () => {
  const closed = () => new Promise<void>((resolve) => (onClosed = resolve))

  // A busy machine may not even connect in 50 ms, so the end of the connection is for the next tests.
  test('is an error in time', async () => {
    await expect(fetchAll([remote('/a/silent')], never, 50)).rejects.toMatchObject({
      code: 'image_download_failed',
      message: expect.stringContaining('in time'),
    })
  })

  test('is left when the caller aborts', async () => {
    const gone = closed()
    const caller = new AbortController()
    onOpened = () => caller.abort(new Error('The caller left.'))
    const fetched = fetchAll([remote('/a/silent')], caller.signal)
    await expect(fetched).rejects.toThrow('The caller left.')
    await gone
  })

  test('is left when another image fails', async () => {
    const gone = closed()
    const fetched = fetchAll([remote('/a/silent'), remote('/a/gone', 1)])
    await expect(fetched).rejects.toMatchObject({ message: expect.stringContaining('404') })
    await gone
  })
})
