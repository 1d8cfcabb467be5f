/**
 * Requests that a page gives up before their headers have arrived.
 *
 * @module-tag slow
 */
import { afterEach, expect, test } from 'vitest'
import { fetchIn } from '../support/answers.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { abortBeforeHeaders, beginEndless, readStream } from '../support/streamed.ts'

let site: Site

afterEach(() => site?.close())

/** A prompt of many chunks, of which the answer to another one knows nothing. */
const LONG = 'Which of the many words of this prompt were computed before? '.repeat(80)

test('twenty that are aborted before their headers leave room for the next, and are not generated', async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  await beginEndless(page, 'open')
  const ask = {
    model: '@inorigin/guide',
    max_tokens: 4,
    messages: [{ role: 'user', content: LONG }],
  }
  const names = await abortBeforeHeaders(page, { ...ask, stream: true }, 20)
  expect(new Set(names)).toEqual(new Set(['AbortError']))
  expect((await readStream(page, 'open')).end).toBeUndefined()
  const next = await fetchIn(page, '/v1/messages', ask)
  expect([next.status, next.text.slice(0, 200)]).toEqual([
    200,
    expect.stringContaining('"type":"message"'),
  ])
  // Of a prompt that was computed to its end, all would be read from the cache.
  const { usage } = JSON.parse(next.text)
  expect(usage.cache_read_input_tokens).toBeLessThan(usage.input_tokens)
})
