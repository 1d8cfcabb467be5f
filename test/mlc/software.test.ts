/**
 * The shortest way through a model that MLC really compiled, on a GPU made of software, which takes
 * half a minute for each token. `MLC_GPU=software npm run test:mlc`; see `setting.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answered, CHAT, chat, user } from '../support/contract.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { askWebllm, type Reference } from './reference.ts'
import { isSoftware } from './setting.ts'
import { openStage, removeModel, type Stage, TAG } from './stage.ts'

const HOUR = 3_600_000

describe.runIf(isSoftware)('on a GPU made of software', () => {
  let stage: Stage | undefined
  let reference: Reference

  const post = async (more: object): Promise<string> => {
    const { status, text } = await (stage as Stage).endpoint.post(CHAT, {
      model: TAG,
      ...chat({ ...more }),
    })
    expect(status, text).toBe(200)
    return text
  }

  beforeAll(async () => {
    stage = await openStage()
    const start = performance.now()
    reference = await askWebllm(stage.page, stage.setting, [user], 3)
    console.info(`WebLLM itself: ${((performance.now() - start) / 1000).toFixed(1)} s`, reference)
    await stage.load()
  }, HOUR)

  afterAll(() => stage?.close())

  test('streams what WebLLM itself answers, as far as a stop sequence', async () => {
    const { content, promptTokens } = reference
    const stop = content.slice(-3)
    const asked = { stop, stream: true, stream_options: { include_usage: true } }
    const streamed = checkChatStream(await post(asked), { includeUsage: true })
    expect(streamed.content).toBe(content.slice(0, content.indexOf(stop)))
    expect(streamed.usage).toMatchObject({ prompt_tokens: promptTokens })
    expect(streamed.finishReason).toBe('stop')
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
    expect(reference.content.startsWith(first.choices[0].message.content)).toBe(true)
    const messages = [user, { role: 'assistant', content: 'yes' }, user]
    const schema = { type: 'array', items: { type: 'integer' } }
    const response_format = { type: 'json_schema', json_schema: { name: 'a', schema } }
    const second = JSON.parse(await post({ max_tokens: 2, messages, response_format })) as Answered
    expect(second.usage.prompt_tokens_details.cached_tokens).toBe(first.usage.prompt_tokens)
    expect(second.choices[0].message.content).toMatch(/^\[/)
  })

  test('is removed', async () => {
    expect(await removeModel((stage as Stage).page)).toBe('remote')
  })
})
