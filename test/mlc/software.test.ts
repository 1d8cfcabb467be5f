/**
 * A short way through a model that MLC really compiled, on a GPU made of software, which takes half a
 * minute for each token. `MLC_GPU=software npm run test:mlc`; see `setting.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answered, chat, postTo, user } from '../contract/wire.ts'
import { CHAT } from '../support/requests.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { isSoftware } from './setting.ts'
import { openStage, removeModel, type Stage, TAG } from './stage.ts'

const HOUR = 3_600_000

describe.runIf(isSoftware)('on a GPU made of software', () => {
  let stage: Stage | undefined
  /** What was answered first. */
  let answered = ''

  const post = async (more: object): Promise<string> => {
    const { status, text } = await postTo((stage as Stage).endpoint, CHAT, {
      model: TAG,
      ...chat({ ...more }),
    })
    expect(status, text).toBe(200)
    return text
  }

  beforeAll(async () => {
    stage = await openStage()
    await stage.load()
  }, HOUR)

  afterAll(() => stage?.close())

  test('streams the most probable tokens', async () => {
    const asked = { max_tokens: 3, stream: true, stream_options: { include_usage: true } }
    const streamed = checkChatStream(await post(asked), { includeUsage: true })
    expect(streamed.usage).toMatchObject({ completion_tokens: 3 })
    expect(streamed.finishReason).toBe('length')
    answered = streamed.content
  })

  test('after an answer that is given up, a second turn goes on from the first', async () => {
    const { page } = stage as Stage
    const body = { model: TAG, ...chat({ stream: true, max_tokens: 400 }) }
    await page.evaluate(
      async ([path, long]) => {
        const giving = new AbortController()
        const { signal } = giving
        const headers = { 'content-type': 'application/json' }
        const init = { method: 'POST', headers, body: JSON.stringify(long), signal }
        await (await fetch(path, init)).body?.getReader().read()
        giving.abort()
      },
      [CHAT, body] as const,
    )
    const first = JSON.parse(await post({ max_tokens: 1 })) as Answered
    const { content } = first.choices[0].message
    expect(content).not.toBe('')
    expect(answered.startsWith(content)).toBe(true)
    const messages = [user, { role: 'assistant', content: 'yes' }, user]
    const second = JSON.parse(await post({ max_tokens: 1, messages })) as Answered
    expect(second.usage.prompt_tokens_details.cached_tokens).toBe(first.usage.prompt_tokens)
    expect(second.choices[0].message.content).not.toBe('')
  })

  test('an answer fits its schema', async () => {
    const schema = { type: 'array', items: { type: 'integer' } }
    const response_format = { type: 'json_schema', json_schema: { name: 'a', schema } }
    const asked = JSON.parse(await post({ max_tokens: 2, response_format })) as Answered
    expect(asked.choices[0].message.content).toMatch(/^\[/)
  })

  test('is removed', async () => {
    expect(await removeModel((stage as Stage).page)).toBe('remote')
  })
})
