/**
 * A model that MLC really compiled, from its download to its removal, behind the endpoints of a built
 * app: `npm run test:mlc`. It needs a GPU, and a network or copies of the files; see `setting.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { CHAT, fetchIn, MESSAGES } from '../support/requests.ts'
import { type Answered, chat, checkGeneration, postTo, type Traits } from '../contract/wire.ts'
import { isSoftware } from './setting.ts'
import { openStage, removeModel, type Stage, TAG } from './stage.ts'

const HOUR = 3_600_000

/** Finds out what the contract has to know of the model that is loaded. */
async function findTraits({ page, setting }: Stage): Promise<Traits> {
  const { data } = JSON.parse((await fetchIn(page, '/v1/models')).text) as {
    data: {
      id: string
      max_input_tokens: number
      capabilities?: { thinking?: { supported?: boolean } }
    }[]
  }
  const model = data.find(({ id }) => id === TAG)
  if (!model) throw new Error(`/v1/models does not list ${TAG}.`)
  const reasons = model.capabilities?.thinking?.supported === true
  // Templates that write thoughts leave them out again, so that what was computed is not what follows.
  const goesOn = /^(SmolLM2|Llama-3|Qwen2)/.test(
    typeof setting.mlc === 'string' ? setting.mlc : setting.mlc.model_id,
  )
  return { model: TAG, contextWindow: model.max_input_tokens, reasons, goesOn }
}

const question = {
  messages: [{ role: 'user', content: 'What is the capital of France? Answer in one word.' }],
}

describe.skipIf(isSoftware)('on a GPU', () => {
  let stage: Stage
  let traits: Traits

  beforeAll(async () => {
    stage = await openStage()
    await stage.load()
    traits = await findTraits(stage)
  }, HOUR)

  afterAll(() => stage?.close())

  checkGeneration(
    () => stage.endpoint,
    () => traits,
  )

  test('knows what its weights know, in both wire styles', async () => {
    const asked = { model: TAG, ...chat({ ...question, max_tokens: 200 }) }
    const completion = JSON.parse(
      (await postTo(stage.endpoint, CHAT, { ...asked, reasoning_effort: 'none' })).text,
    ) as Answered
    expect(completion.choices[0].message.content).toMatch(/Paris/i)
    const message = JSON.parse(
      (await postTo(stage.endpoint, MESSAGES, { ...asked, thinking: { type: 'disabled' } })).text,
    ) as Answered
    expect(message.content[0].text).toMatch(/Paris/i)
  })

  test('an answer that is given up leaves another as it is, and the model free', async () => {
    const body = {
      model: TAG,
      ...chat({
        stream: true,
        max_tokens: 400,
        messages: [{ role: 'user', content: 'Count to a thousand.' }],
      }),
    }
    const other = { model: TAG, ...chat({ ...question, max_tokens: 16 }) }
    const [alone, together, took] = await stage.page.evaluate(
      async ([path, long, short]) => {
        const init = (json: unknown, signal?: AbortSignal): RequestInit => ({
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(json),
          ...(signal && { signal }),
        })
        const text = async (): Promise<string> =>
          (await (await fetch(path, init(short))).json()).choices[0].message.content
        const before = await text()
        const giving = new AbortController()
        const reader = (await fetch(path, init(long, giving.signal))).body?.getReader()
        for (let count = 0; count < 4; count += 1) await reader?.read()
        const waiting = text()
        giving.abort()
        const start = performance.now()
        return [before, await waiting, performance.now() - start] as const
      },
      [CHAT, body, other] as const,
    )
    expect(together).toBe(alone)
    expect(took).toBeLessThan(60_000)
  })

  test('tells how fast it is', async () => {
    const asked = chat({
      max_tokens: 128,
      messages: [{ role: 'user', content: 'Tell a long story about a lighthouse.' }],
    })
    const start = performance.now()
    const { usage } = JSON.parse(
      (await postTo(stage.endpoint, CHAT, { model: TAG, ...asked })).text,
    ) as Answered
    const seconds = (performance.now() - start) / 1000
    console.info(
      `${usage.completion_tokens} tokens in ${seconds.toFixed(2)} s: ${(usage.completion_tokens / seconds).toFixed(1)} a second, prompt included`,
    )
    expect(usage.completion_tokens).toBeGreaterThan(1)
  })

  test('is unloaded, answers again without a download, and is removed', async () => {
    const stateOf = () =>
      stage.page.evaluate(async (tag) => {
        const { server } = globalThis as unknown as { server: Server }
        return (await server.models.list()).find((one) => one.tag === tag)
      }, TAG)
    const asked = { model: TAG, ...chat({ ...question, max_tokens: 4 }) }
    await stage.page.evaluate(
      (tag) => (globalThis as unknown as { server: Server }).server.models.unload(tag),
      TAG,
    )
    expect(await stateOf()).toMatchObject({ status: 'stored' })
    const fetched: string[] = []
    stage.page.on('request', (request) => fetched.push(request.url()))
    expect((await postTo(stage.endpoint, CHAT, asked)).status).toBe(200)
    expect(
      fetched.filter((url) => /params_shard|\.wasm$/.test(url) && !url.includes('/ort/')),
    ).toEqual([])
    expect(await removeModel(stage.page)).toBe('remote')
  })
})
