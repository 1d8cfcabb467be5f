/** Responses that are stored in memory, and what happens to them when their host dies. */
import type { Page } from 'playwright'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { names } from '../../src/link/protocol.ts'
import { fetchIn } from '../support/answers.ts'
import { endWorker, workersOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const ANN = { authorization: 'Bearer ann' }
const BEA = { authorization: 'Bearer bea' }

let site: Site

beforeEach(async () => {
  site = await openSite()
})

afterEach(() => site?.close())

async function openTab(): Promise<Page> {
  const page = await site.open()
  await serveIn(page)
  return page
}

/** Has the guide answer, and returns the response's id and text. */
async function respond(page: Page, fields: object = {}): Promise<{ id: string; text: string }> {
  const body = { model: '@inorigin/guide', input: 'Who are you?', max_output_tokens: 16, ...fields }
  const { status, text } = await fetchIn(page, '/v1/responses', body, ANN)
  expect([status, text]).toEqual([200, expect.stringContaining('"store":true')])
  const { id, output } = JSON.parse(text)
  return { id, text: output[0].content[0].text }
}

async function getStatus(page: Page, id: string, headers = ANN): Promise<number> {
  return (await fetchIn(page, `/v1/responses/${id}`, undefined, headers)).status
}

test('the next host has the responses of a closed one, for their key only', async () => {
  const host = await openTab()
  const next = await openTab()
  const response = await respond(host)
  const deleted = await respond(host)
  const deletion = host.evaluate(
    ([path, headers]) => fetch(path, { method: 'DELETE', headers }).then(({ status }) => status),
    [`/v1/responses/${deleted.id}`, ANN] as const,
  )
  expect(await deletion).toBe(200)
  await host.close()

  const retrieved = await fetchIn(next, `/v1/responses/${response.id}`, undefined, ANN)
  expect(retrieved.status).toBe(200)
  expect(JSON.parse(retrieved.text).output[0].content[0].text).toBe(response.text)
  expect(await getStatus(next, response.id, BEA)).toBe(404)
  expect(await getStatus(next, deleted.id)).toBe(404)
  const reply = await respond(next, { previous_response_id: response.id, input: 'And who else?' })
  expect(await getStatus(next, reply.id)).toBe(200)
})

test('a tab that joins later gets the responses, too', { tags: ['slow'] }, async () => {
  const host = await openTab()
  const { id } = await respond(host)
  const late = await site.open()
  await late.evaluate(
    (channel) => {
      const stored = new Promise((resolve) => {
        new BroadcastChannel(channel).addEventListener('message', ({ data }) => {
          if (data.type === 'stored') resolve(undefined)
        })
      })
      Object.assign(globalThis, { stored })
    },
    names(`${site.url}/`).responses,
  )
  await serveIn(late)
  await late.evaluate(() => Reflect.get(globalThis, 'stored'))
  await host.close()
  expect(await getStatus(late, id)).toBe(200)
})

test("a lone tab's host worker ends: its responses stay", { tags: ['slow'] }, async () => {
  const page = await openTab()
  const { id } = await respond(page)
  await endWorker(workersOf(page, 'worker.js')[0]!)
  expect(await getStatus(page, id)).toBe(200)
})
