/** Answers that go on, token for token, when the tab that computes them dies. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { openDeathStage, ROWS, TOKENS, type DeathStage } from '../support/death-stage.ts'
import { crash, threadsOf } from '../support/dying.ts'
import { bodyOf } from '../support/generation-cases.ts'
import { ask } from '../support/requests.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'
import { toTranscript } from '../support/transcript.ts'

const SLOW = { tags: ['slow'] }

describe('a host dies', () => {
  let site: Site
  /** Tabs that can host, in the order of their election. */
  let hosts: Page[]
  /** A tab that asks and never hosts. */
  let asker: Page

  /** Opens the tabs. `ends` are the ways in which the hosts die. Default: all are closed. */
  async function openTabs(
    options?: SiteOptions,
    ends: ((page: Page) => Promise<void>)[] = [],
  ): Promise<void> {
    site = await openSite(options)
    hosts = []
    for (let count = 0; count < 3; count += 1) {
      const host = await site.open()
      await serveIn(host, { device: 'wasm' })
      hosts.push(host)
    }
    asker = await site.open()
    await asker.exposeFunction('reached', () => {
      const host = hosts.shift()!
      const end = ends.shift()
      return end ? end(host) : host.close()
    })
  }

  afterEach(() => site?.close())

  /** Streams a sampled answer; the host dies after each of these numbers of frames. */
  async function stream(tokens: number, frames: readonly number[] = []) {
    const question = { style: 'chat', stream: true, client: 'fetch', abortAfter: null } as const
    const body = bodyOf('chat', 'sampled', tokens, 7)
    const { text } = await ask(asker, { ...question, body, frames })
    const transcript = toTranscript('chat', text, { stream: true })
    expect(transcript.error).toBeNull()
    expect(transcript.tokens[1]).toBe(tokens)
    return transcript
  }

  test('once in a stream, which is the same as without', { tags: ['everyday'] }, async () => {
    await openTabs()
    const whole = await stream(600)
    expect(await stream(600, [10])).toEqual(whole)
    // The second host computed a part, so the first one had not finished.
    expect(threadsOf(hosts[0]!)).toContain('/inorigin/model-worker.js')
  })

  test('twice in a stream', async () => {
    await openTabs()
    const whole = await stream(600)
    expect(await stream(600, [3, 40])).toEqual(whole)
    // The third host computed a part, so the first two had not finished.
    expect(hosts.map(threadsOf)).toEqual([expect.arrayContaining(['/inorigin/model-worker.js'])])
  })

  test('by a crash of its renderer', SLOW, async () => {
    // The service worker runs in the renderer of the first tab, and a stream ends with it.
    await openTabs({ ownBrowser: true }, [(first) => first.close(), crash])
    const whole = await stream(600)
    expect(await stream(600, [10, 40])).toEqual(whole)
    expect(threadsOf(hosts[0]!)).toContain('/inorigin/model-worker.js')
  })

  test('by a crash that does not reach a service worker with a COEP header', SLOW, async () => {
    const headers = (path: string): Record<string, string> =>
      path === '/sw.js' ? { 'cross-origin-embedder-policy': 'require-corp' } : {}
    // The first tab registers the service worker, which would otherwise run in its renderer.
    await openTabs({ ownBrowser: true, headers }, [crash])
    const whole = await stream(600)
    expect(await stream(600, [10])).toEqual(whole)
  })

  test('while it loads the model for a stream', SLOW, async () => {
    let isReleased = false
    await openTabs({ slow: { '/inorigin/models/guide/onnx/model.onnx': () => isReleased } })
    const body = bodyOf('messages', 'sampled', 20, 7)
    const question = { style: 'messages', stream: true, client: 'fetch', abortAfter: null } as const
    const answer = ask(asker, { ...question, body, frames: 1 })
    await expect.poll(() => hosts.length).toBe(2)
    isReleased = true
    const { text } = await answer
    expect(text).toContain('event: ping')
    expect(text.match(/^event: message_start$/gm)).toHaveLength(1)
    expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/^event: message_stop\n/)
  })
})

// `npm run test:long` has the host die after each token. Here each kind of answer has another number, and
// all together are spread over the answer.
describe('a host dies once', SLOW, () => {
  const CASES = ROWS.map((row, index) => ({ ...row, tokens: 1 + ((index * 7) % (TOKENS - 1)) }))
  let stage: DeathStage

  beforeAll(async () => {
    stage = await openDeathStage()
  })

  afterAll(() => stage?.close())

  test.each(CASES)(
    '$style, $content, stream: $stream, $way: is the same after a death at token $tokens',
    async ({ tokens, ...row }) => {
      const whole = await stage.readWhole(row)
      expect(whole.tokens[1]).toBe(TOKENS)
      expect(await stage.readInterrupted(row, tokens)).toEqual(whole)
    },
  )
})
