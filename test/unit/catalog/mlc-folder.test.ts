/** Files of a server that is slow or endless. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fetchListing, MAX_SMALL_FILE_BYTES } from '../../../src/catalog/hub/resolve-hub.ts'
import { fetchSmallFile, openFolder } from '../../../src/catalog/mlc/resolve-mlc.ts'

const { signal } = new AbortController()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** A server that sends a byte after each of those seconds, and then nothing more, nor an end. */
function serve(...seconds: number[]): void {
  vi.stubGlobal('fetch', async (_url: string, { signal: stop }: RequestInit) => {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        stop?.addEventListener('abort', () => controller.error(stop.reason))
        for (const wait of seconds) {
          // oxlint-disable-next-line tests/no-fixed-wait -- The timers are fake.
          await new Promise((resolve) => setTimeout(resolve, wait * 1000))
          controller.enqueue(Uint8Array.of(1))
        }
        if (seconds.length > 1) controller.close()
      },
    })
    return new Response(body)
  })
}

const read = () => fetchSmallFile('https://h.test/a', { signal })

test('A slow file is read to its end', async () => {
  serve(20, 20, 20)
  const reading = read()
  await vi.advanceTimersByTimeAsync(60_000)
  expect((await reading)?.bytes).toEqual(Uint8Array.of(1, 1, 1))
})

test('A file that stops is given up and can be requested again', async () => {
  serve(1)
  const reading = read().catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(32_000)
  expect(await Promise.race([reading, 'it is still read'])).toMatchObject({
    kind: 'unavailable',
    code: 'hub_unreachable',
    message: expect.stringContaining('no data arrived for 30 s'),
  })
})

/** A server that sends the same piece without end for what is named so, and those files else. */
function sendEndlessly(name: string, piece: Uint8Array, files: Record<string, string> = {}) {
  const sent = { bytes: 0 }
  vi.stubGlobal('fetch', async (url: string) => {
    const path = url.replace(/^.*\//, '')
    const known = files[path]
    if (known !== undefined) return new Response(known)
    if (!url.includes(name)) return new Response(null, { status: 404 })
    return new Response(
      new ReadableStream<Uint8Array>({
        pull(controller) {
          sent.bytes += piece.length
          controller.enqueue(piece)
        },
      }),
    )
  })
  return sent
}

const MIB = 2 ** 20
const limits = { maxInputTokens: null, maxOutputTokens: null, created: null }
const repository = { host: 'https://h.test/', repository: 'me/it', revision: 'main', dtypes: null }

test.each<[string, () => Promise<unknown>]>([
  ['file', () => read()],
  ['listing', () => fetchListing({ ...repository, ...limits }, { signal })],
])('An endless %s is given up before it fills the memory', async (_, reading) => {
  const sent = sendEndlessly('h.test', new Uint8Array(MIB))
  await expect(reading()).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'hub_unfit',
    message: expect.stringContaining(`sent more than the limit of ${MAX_SMALL_FILE_BYTES} bytes`),
  })
  expect(sent.bytes).toBeLessThan(MAX_SMALL_FILE_BYTES + 4 * MIB)
})

test('Weights are not read beyond the length of their list', async () => {
  const list = JSON.stringify({ records: [{ dataPath: 'w.bin', nbytes: 3000 }] })
  const sent = sendEndlessly('w.bin', new Uint8Array(1000), {
    'mlc-chat-config.json': '{}',
    'tensor-cache.json': list,
  })
  await expect(openFolder('https://h.test/m/', { signal })).rejects.toMatchObject({
    code: 'hub_unfit',
    message: expect.stringContaining('w.bin sent more than the limit of 3000 bytes'),
  })
  expect(sent.bytes).toBeLessThan(10_000)
})
