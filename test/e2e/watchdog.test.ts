/**
 * Model workers that hang: in a tokenizer that never comes to an end, and in the middle of an answer.
 *
 * @module-tag slow
 */
import type { CatalogDocument, ModelEntry } from '../../src/catalog/schema.ts'
import { readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { test } from 'vitest'
import type { Page } from 'playwright'
import { workersOf } from '../support/dying.ts'
import { openTokenFault } from '../support/fault-at-token.ts'
import {
  abortStream,
  beginStream,
  ENDLESS,
  errorOf,
  fetchIn,
  GUIDE,
  MESSAGES,
  streamEnd,
} from '../support/requests.ts'
import { openSite, serveIn } from '../support/site.ts'

const FOLDER = 'dist-demo/inorigin/models'
const PATH = '/hostile/tokenizer.json'

interface HostileModel {
  catalog: CatalogDocument
  /** Pages that the site must serve beside the demo. */
  pages: Record<string, string>
}

/** A model of that tag whose tokenizer needs time that doubles with each letter `a` of a word. */
function withSlowTokenizer(tag: string): HostileModel {
  const tokenizer = JSON.parse(readFileSync(`${FOLDER}/guide/tokenizer.json`, 'utf8'))
  const [split] = tokenizer.pre_tokenizer.pretokenizers
  split.pattern.Regex = `(?:a+)+#|${split.pattern.Regex}`
  const body = JSON.stringify(tokenizer)
  const { entries } = JSON.parse(readFileSync(`${FOLDER}/catalog.json`, 'utf8')) as CatalogDocument
  const guide = entries.find((entry) => entry.tag === '@inorigin/guide') as ModelEntry
  const implementations = guide.implementations.map((implementation) => ({
    ...implementation,
    resources: implementation.resources.map((resource) =>
      resource.name === 'tokenizer.json'
        ? {
            ...resource,
            url: PATH,
            bytes: Buffer.byteLength(body),
            sha256: createHash('sha256').update(body).digest('hex'),
          }
        : { ...resource, url: new URL(resource.url, 'http://localhost/inorigin/models/').pathname },
    ),
  }))
  const entry: ModelEntry = { ...guide, tag: tag as ModelEntry['tag'], implementations }
  return { catalog: { version: 1, entries: [entry] }, pages: { [PATH]: body } }
}

const ask = (page: Page, model: string, content: string) =>
  fetchIn(page, MESSAGES, { model, max_tokens: 4, messages: [{ role: 'user', content }] })

test.concurrent('a prompt that a tokenizer never gets through ends its worker, and the next one is answered', async ({
  expect,
  onTestFinished,
}) => {
  const { catalog, pages } = withSlowTokenizer('@me/hostile')
  const site = await openSite({ pages })
  onTestFinished(() => site.close())
  const page = await site.open()
  await serveIn(page, { catalog })
  expect((await ask(page, '@me/hostile', 'Hello')).status).toBe(200)
  const [worker] = workersOf(page, 'model-worker.js')
  await beginStream(page, 'endless', '@me/hostile', {
    messages: [{ role: 'user', content: 'a'.repeat(60) }],
  })
  const error = errorOf(await streamEnd(page, 'endless'))
  expect(error?.message).toMatch(
    /^@me\/hostile did not respond for 30 s while it prepared a prompt\./,
  )
  expect((await ask(page, '@me/hostile', 'Hello')).status).toBe(200)
  await expect.poll(() => page.workers()).not.toContain(worker)
})

test.concurrent('a worker that does not notice a cancellation is ended when others wait for it', async ({
  expect,
  onTestFinished,
}) => {
  const fault = await openTokenFault()
  onTestFinished(() => fault.close())
  const site = await openSite({ pages: { '/inorigin/model-worker.js': fault.script } })
  onTestFinished(() => site.close())
  const page = await site.open()
  await serveIn(page)
  const hanging = fault.at(5)
  await beginStream(page, 'canceled', GUIDE, ENDLESS)
  await hanging
  await beginStream(page, 'waiting', GUIDE)
  await abortStream(page, 'canceled')
  const error = errorOf(await streamEnd(page, 'waiting'))
  expect(error?.message).toMatch(
    /^@inorigin\/guide did not respond for 30 s after .* canceled\. .* Try again/,
  )
  expect((await ask(page, GUIDE, 'Hello')).status).toBe(200)
})
