/**
 * One model for several at once: streams side by side, prompts remembered, keys kept apart.
 *
 * @module-tag slow
 */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

interface Asked {
  messages: { role: string; content: string }[]
  max_tokens: number
  key?: string
  /** Cancels once this many texts have come. */
  cancelAfter?: number
}

interface Answered {
  text: string
  cached: number
  prompt: number
}

/** Streams all of these at once. */
function stream(page: Page, wanted: Asked[]): Promise<Answered[]> {
  return page.evaluate(async (requests) => {
    const one = async ({ key, cancelAfter = Infinity, ...fields }: Asked): Promise<Answered> => {
      const leaving = new AbortController()
      const response = await fetch('/v1/chat/completions', {
        method: 'POST',
        signal: leaving.signal,
        headers: {
          'content-type': 'application/json',
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({
          model: '@inorigin/guide',
          temperature: 0,
          stream: true,
          stream_options: { include_usage: true },
          ...fields,
        }),
      })
      const answered: Answered = { text: '', cached: 0, prompt: 0 }
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
      let texts = 0
      try {
        for (let rest = ''; ;) {
          const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
          if (done) return answered
          const frames = (rest + value).split('\n\n')
          rest = frames.pop() ?? ''
          for (const frame of frames) {
            if (!frame.startsWith('data: {')) continue
            const { choices, usage } = JSON.parse(frame.slice('data: '.length))
            const text = choices[0]?.delta.content ?? ''
            answered.text += text
            if (text !== '') texts += 1
            if (usage) {
              answered.cached = usage.prompt_tokens_details.cached_tokens
              answered.prompt = usage.prompt_tokens
            }
          }
          if (texts >= cancelAfter) leaving.abort()
        }
      } catch {
        return answered
      }
    }
    return Promise.all(requests.map(one))
  }, wanted)
}

const user = (content: string) => [{ role: 'user', content }]
const QUESTIONS = ['What is inorigin?', 'What is WebGPU?', 'Hello', 'What is 3 + 4?', 'Thank you']

test('answers written side by side are those written alone, also when one is cancelled', async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page, { device: 'wasm' })
  const wanted = QUESTIONS.map((question) => ({ messages: user(question), max_tokens: 32 }))
  const alone: Answered[] = []
  for (const one of wanted) alone.push(...(await stream(page, [one])))
  expect(alone.map(({ text }) => text).every((text) => text !== '')).toBe(true)

  const together = await stream(page, wanted)
  expect(together.map(({ text }) => text)).toEqual(alone.map(({ text }) => text))

  const long = { messages: user('Tell me about service workers.'), max_tokens: 200, cancelAfter: 1 }
  const [, ...others] = await stream(page, [long, ...wanted])
  expect(others.map(({ text }) => text)).toEqual(alone.map(({ text }) => text))
})

test('a second turn computes what is new; another key starts from nothing', async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page, { device: 'wasm', apiKeys: ['one', 'two'] })
  const first = { messages: user('What is inorigin?'), max_tokens: 24, key: 'one' }
  const [before] = await stream(page, [first])
  expect(before?.cached).toBe(0)

  const messages = [
    ...first.messages,
    { role: 'assistant', content: before?.text ?? '' },
    ...user('What is WebGPU?'),
  ]
  const [second] = await stream(page, [{ ...first, messages }])
  expect(second?.cached).toBeGreaterThanOrEqual(before?.prompt ?? Infinity)
  expect(second?.cached).toBeLessThan(second?.prompt ?? 0)

  const [other] = await stream(page, [{ ...first, messages, key: 'two' }])
  expect(other).toMatchObject({ cached: 0, prompt: second?.prompt, text: second?.text })
})
