/** One model for several at once: streams side by side, prompts remembered, keys kept apart. */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import { ask, CHAT, fetchIn, GUIDE } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { toTranscript } from '../support/transcript.ts'

const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

const user = (content: string) => [{ role: 'user', content }]
const QUESTIONS = ['What is inorigin?', 'What is WebGPU?', 'Hello', 'What is 3 + 4?', 'Thank you']

/** Streams a greedy answer, and resolves with its text. `abortAfter` is a number of frames. */
async function stream(page: Page, question: string, abortAfter: number | null = null) {
  const body = { model: GUIDE, temperature: 0, max_tokens: 32, messages: user(question) }
  const rest = { style: 'chat', stream: true, client: 'fetch', frames: null, abortAfter } as const
  const { text } = await ask(page, { ...rest, body })
  return toTranscript('chat', text, { stream: true, cut: abortAfter !== null }).text
}

test(
  'answers written side by side are those written alone, also when one is canceled',
  SLOW,
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page, { device: 'wasm' })
    const alone: string[] = []
    for (const question of QUESTIONS) alone.push(await stream(page, question))
    expect(alone).not.toContain('')
    const together = () => Promise.all(QUESTIONS.map((question) => stream(page, question)))
    expect(await together()).toEqual(alone)

    const canceled = stream(page, 'Tell me about service workers.', 2)
    expect(await together()).toEqual(alone)
    await canceled
  },
)

test(
  'a second turn computes what is new; another key starts from nothing',
  { tags: ['everyday'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page, { device: 'wasm', apiKeys: ['one', 'two'] })
    const complete = async (messages: object[], key: string) => {
      const body = { model: GUIDE, temperature: 0, max_tokens: 24, messages }
      const { text } = await fetchIn(page, CHAT, body, { authorization: `Bearer ${key}` })
      const { choices, usage } = JSON.parse(text)
      const { cached_tokens: cached } = usage.prompt_tokens_details
      return { text: choices[0].message.content, cached, prompt: usage.prompt_tokens }
    }
    const first = await complete(user('What is inorigin?'), 'one')
    expect(first.cached).toBe(0)

    const messages = [
      ...user('What is inorigin?'),
      { role: 'assistant', content: first.text },
      ...user('What is WebGPU?'),
    ]
    const second = await complete(messages, 'one')
    expect(second.cached).toBeGreaterThanOrEqual(first.prompt)
    expect(second.cached).toBeLessThan(second.prompt)

    const other = await complete(messages, 'two')
    expect(other).toEqual({ ...second, cached: 0 })
    const wrong: Record<string, string>[] = [
      {},
      { authorization: 'Bearer wrong' },
      { 'x-api-key': 'wrong' },
    ]
    for (const headers of wrong)
      expect((await fetchIn(page, '/v1/models', undefined, headers)).status).toBe(401)
  },
)
