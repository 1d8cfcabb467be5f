/** Files of a server that is no hub, as slowly as they may come. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fetchFile } from '../../../src/catalog/mlc/folder.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** A server that sends a byte after each of those seconds, and then nothing more, nor an end. */
function serve(...seconds: number[]): void {
  vi.stubGlobal('fetch', async (_url: string, { signal }: { signal: AbortSignal }) => {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        signal.addEventListener('abort', () => controller.error(signal.reason))
        for (const wait of seconds) {
          await new Promise((resolve) => setTimeout(resolve, wait * 1000))
          controller.enqueue(Uint8Array.of(1))
        }
        if (seconds.length > 1) controller.close()
      },
    })
    return new Response(body)
  })
}

const read = () => fetchFile('https://h.test/a', { signal: new AbortController().signal })

test('what comes slowly is waited for', async () => {
  serve(20, 20, 20)
  const reading = read()
  await vi.advanceTimersByTimeAsync(60_000)
  expect((await reading)?.bytes).toEqual(Uint8Array.of(1, 1, 1))
})

test('what stops coming is not, and can be asked for again', async () => {
  serve(1)
  const reading = read().catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(32_000)
  expect(await Promise.race([reading, 'it is still read'])).toMatchObject({
    kind: 'unavailable', code: 'hub_unreachable', message: expect.stringContaining('nothing came for 30 s'),
  })
})
