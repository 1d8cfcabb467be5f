/**
 * Tabs of two versions of the library, and databases of other versions.
 *
 * @module-tag slow
 */
import { test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { askBriefly } from '../support/answers.ts'
import { openSite, serveIn } from '../support/site.ts'
import {
  beginEndless,
  beginStream,
  ENDLESS,
  streamEnd,
  streamHas,
  textOf,
} from '../support/streamed.ts'
import { deployNext } from '../support/versions.ts'

const GUIDE = '@inorigin/guide'
const MODEL = '/inorigin/models/guide/onnx/model.onnx'
const QUESTION = {
  model: GUIDE,
  max_tokens: 4,
  messages: [{ role: 'user', content: 'Hello' }],
}

interface InPage {
  server: Server
}

const isControlled = (page: Page): Promise<boolean> =>
  page.evaluate(() => (globalThis as unknown as InPage).server.controlled)

/** The status of an answer by `server.fetch`. */
const askDirectly = (page: Page): Promise<number> =>
  page.evaluate(async (body) => {
    const { server } = globalThis as unknown as InPage
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await server.fetch('/v1/messages', init)).text().then((text) => JSON.parse(text).type)
  }, QUESTION)

/** Opens the database of the site in a later version, as a later version of the library does. */
const migrate = (page: Page): Promise<void> =>
  page.evaluate(
    () =>
      new Promise<void>((resolve, reject) => {
        const opening = indexedDB.open(`inorigin:1:${location.origin}/`, 99)
        opening.onerror = () => reject(opening.error)
        opening.onsuccess = () => {
          opening.result.close()
          resolve()
        }
      }),
  )

test.concurrent('a new version rolls out under an open stream, which ends on the old one', async ({
  expect,
  onTestFinished,
}) => {
  // The model comes late, so that the stream is open until the test reports.
  const site = await openSite({ slow: { [MODEL]: () => site.reports.length > 0 } })
  onTestFinished(() => site.close())
  const old = await site.open()
  await serveIn(old)
  await beginStream(old, 'open', GUIDE, ENDLESS)
  await streamHas(old, 'open', 'event: ping')
  deployNext(site)
  const next = await site.open()
  await serveIn(next)
  expect(await isControlled(next)).toBe(false)
  // Both versions store the same file.
  const direct = askDirectly(next)
  await old.evaluate(() => fetch('/report', { method: 'POST', body: 'go on' }))
  expect(await direct).toBe('message')
  expect(textOf(await streamEnd(old, 'open'))).not.toBe('')
  await expect.poll(() => isControlled(next)).toBe(true)
  // The next requests run on the new version, also those of the old tab.
  await Promise.all([old, next].map((page) => page.evaluate(() => navigator.serviceWorker.ready)))
  for (const page of [next, old]) {
    const { status, text } = await askBriefly(page)
    expect([status, JSON.parse(text).type]).toEqual([200, 'message'])
  }
  expect(await askDirectly(next)).toBe('message')
  expect(await askDirectly(old)).toBe('message')
  const damaged = await next.evaluate((tag) => {
    return (globalThis as unknown as InPage).server.storage.repair(tag as '@inorigin/guide')
  }, GUIDE)
  expect(damaged).toBe(0)
})

test.concurrent('a script that the open tabs cannot reach does not take over', async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite()
  onTestFinished(() => site.close())
  const old = await site.open()
  await serveIn(old)
  // A worker that starts later is one of the new version.
  expect((await askBriefly(old)).status).toBe(200)
  deployNext(site)
  await old.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready
    // The page asks the waiting script for its version at intervals.
    const asked = new Promise<void>((resolve) => {
      const post = ServiceWorker.prototype.postMessage
      let questions = 0
      ServiceWorker.prototype.postMessage = function (this: ServiceWorker, ...given: unknown[]) {
        if (this === registration.waiting && ++questions === 2) resolve()
        Reflect.apply(post, this, given)
      }
    })
    await registration.update()
    await asked
  })
  expect((await askBriefly(old)).status).toBe(200)
  expect(await isControlled(old)).toBe(true)
})

test.concurrent('a stream ends although a later version migrates the database under it', async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite()
  onTestFinished(() => site.close())
  const [old, next] = [await site.open(), await site.open()]
  await serveIn(old)
  await beginEndless(old, 'open')
  await migrate(next)
  expect(textOf(await streamEnd(old, 'open'))).not.toBe('')
})

test.concurrent('a version that was set back says so, and what to do', async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite()
  onTestFinished(() => site.close())
  const page = await site.open()
  await migrate(page)
  await serveIn(page)
  const { status, text } = await askBriefly(page)
  const { error } = JSON.parse(text)
  expect([status, error.code ?? text]).toEqual([503, 'store_newer'])
  expect(error.message).toMatch(/newer version .* Reload .* set back .* clear the site's data/)
})
