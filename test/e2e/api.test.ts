/** The options and the handle of `serve()` in Chromium. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server, ServeOptions } from '../../src/index.ts'
import { bundleScript } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  serve(options?: ServeOptions): Promise<Server>
  server: Server
}

let site: Site

beforeAll(async () => {
  const worker = await bundleScript('./mistyped-worker.ts', 'mistyped')
  site = await openSite({ pages: { '/own-sw.js': worker } })
})

afterAll(() => site?.close())

test('serve and the methods of its handle refuse unknown options', async () => {
  const page = await site.open()
  await serveIn(page)
  const messages = await page.evaluate(async () => {
    const { serve, server } = globalThis as unknown as InPage
    const { models, storage } = server
    const tag = '@inorigin/digits'
    const mistyped = { sigal: new AbortController().signal } as object
    const session = await server.session(tag)
    const refusals = [
      () => serve({ apikeys: [] } as ServeOptions),
      () => models.load(tag, mistyped),
      () => models.progress(mistyped)[Symbol.asyncIterator]().next(),
      () => server.predict(tag, {}, mistyped),
      () => server.session(tag, mistyped),
      () => session.predict({}, mistyped),
      () => server.explain(tag, mistyped),
      () => server.trace(mistyped)[Symbol.asyncIterator]().next(),
      () => storage.repair(tag, mistyped),
      () => storage.import(tag, [], mistyped),
    ]
    return Promise.all(
      refusals.map(async (call) => {
        try {
          await call()
          return 'accepted'
        } catch (error) {
          return (error as Error).message
        }
      }),
    )
  })
  const [ofServe, ...others] = messages
  expect(ofServe).toBe('Unknown option "apikeys". Did you mean apiKeys?')
  for (const message of others) expect(message).toContain('Unknown option "sigal".')
  await page.close()
})

test('attach refuses unknown options', async () => {
  const page = await site.open()
  const message = await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.register('/own-sw.js', { scope: '/own/' })
    const { port1, port2 } = new MessageChannel()
    const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)))
    const worker = registration.installing ?? registration.waiting ?? registration.active
    worker?.postMessage('what', [port2])
    return answer
  })
  expect(message).toBe('Unknown option "isolated". Did you mean isolate?')
  await page.close()
})

test('`using` closes the server and a session at the end of the block', async () => {
  const page = await site.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  // The test's own compiler does not know `using`; the browser does.
  const rejection = await page.evaluate(`(async () => {
    let closed
    {
      using server = await serve()
      using session = await server.session('@inorigin/digits')
      closed = { server, session }
    }
    const ends = [closed.session.predict({}), closed.server.models.list()]
    return Promise.all(ends.map((end) => end.then(() => 'answered', ({ kind }) => kind)))
  })()`)
  expect(rejection).toEqual(['aborted', expect.not.stringMatching('answered')])
  await expect.poll(() => page.workers().length).toBe(0)
  await page.close()
})
