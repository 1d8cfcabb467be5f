/**
 * Answers of 60 tokens whose host dies after the k-th token. `EVERY_TOKEN=true` runs every k; by default, a
 * few of each kind run.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { ask, type Question } from '../support/asking.ts'
import { openTokenFault, type TokenFault } from '../support/fault-at-token.ts'
import { bodyOf, CASES, STYLES, type Case, type Style } from '../support/generation-cases.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { toTranscript } from '../support/transcript.ts'

const TOKENS = 60
const EVERY_TOKEN = process.env['EVERY_TOKEN'] === 'true'

let site: Site
let fault: TokenFault
/** The tab that asks and never hosts. */
let asker: Page
let hosts: Page[]

beforeAll(async () => {
  fault = await openTokenFault()
  site = await openSite({
    ownBrowser: true,
    pages: { '/inorigin/model-worker.js': fault.script },
  })
  await site.context.exposeFunction('reached', () => undefined)
  // The service worker runs in the renderer of the first tab, and would end with its crash.
  hosts = [await openHost()]
  asker = await site.open()
  await hosts[0]!.close()
  await fillHosts()
})

afterAll(async () => {
  await site?.close()
  await fault?.close()
})

async function openHost(): Promise<Page> {
  const host = await site.open()
  await serveIn(host, { device: 'wasm' })
  return host
}

/** Has two tabs that can host: the first one hosts. */
async function fillHosts(): Promise<void> {
  hosts = hosts.filter((host) => !host.isClosed())
  while (hosts.length < 2) hosts.push(await openHost())
}

type Way = 'tab closed' | 'renderer crashed' | 'host worker ended' | 'model worker ended'

const END: Readonly<Record<Way, (host: Page) => Promise<void>>> = {
  'tab closed': (host) => host.close(),
  async 'renderer crashed'(host) {
    const crashed = host.waitForEvent('crash')
    host.goto('chrome://crash').catch(() => undefined)
    await crashed
    await host.close()
  },
  async 'host worker ended'(host) {
    const worker = host.workers().find((one) => one.url().endsWith('/worker.js'))!
    await worker.evaluate(() => self.close()).catch(() => undefined)
  },
  async 'model worker ended'() {
    fault.endWorker()
  },
}

interface Row {
  style: Style
  content: Case
  stream: boolean
  way: Way
}

const WAYS = Object.keys(END) as Way[]
const ROWS: Row[] = [
  ...STYLES.flatMap((style) =>
    CASES.map((content): Row => ({ style, content, stream: true, way: 'tab closed' })),
  ),
  ...STYLES.map((style): Row => ({ style, content: 'sampled', stream: false, way: 'tab closed' })),
  ...WAYS.slice(1).map((way): Row => ({
    style: 'messages',
    content: 'sampled',
    stream: true,
    way,
  })),
]

/** Returns the numbers of tokens after which the host of a row dies. */
function tokensOf(row: Row): number[] {
  const all = Array.from({ length: TOKENS }, (_, index) => index + 1)
  if (EVERY_TOKEN) return all
  // Each row has another number, and all together are spread over the answer.
  return all.slice(0, -1).filter((tokens) => tokens === 1 + ((ROWS.indexOf(row) * 7) % 59))
}

const readAnswer = async ({ style, content, stream }: Row) => {
  const question: Question = {
    style,
    body: bodyOf(style, content, TOKENS, 7),
    stream,
    client: 'fetch',
    frames: null,
    abortAfter: null,
  }
  const { text, end } = await ask(asker, question)
  expect(end).toBe('done')
  return toTranscript(style, text, { stream })
}

describe.each(ROWS)('$style, $content, stream: $stream, $way', (row) => {
  test(
    'has the same answer when its host dies after the k-th token',
    { timeout: 1_800_000 },
    async () => {
      const whole = await readAnswer(row)
      expect(whole.tokens[1]).toBe(TOKENS)
      for (const tokens of tokensOf(row)) {
        await fillHosts()
        const reached = fault.at(tokens)
        const answer = readAnswer(row)
        await Promise.race([reached, answer])
        await END[row.way](hosts[0]!)
        expect(await answer, `death after token ${tokens}`).toEqual(whole)
      }
    },
  )
})
