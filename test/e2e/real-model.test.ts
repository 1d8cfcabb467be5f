/**
 * SmolLM2-135M-Instruct through `/v1`, with the weights of its makers: its answers are those of transformers,
 * and what shapes an answer changes nothing else of it.
 */
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { buildScripts } from '../bench/scripts.ts'
import type { EngineResult } from '../support/real-engine.ts'
import {
  abortStream,
  beginStream,
  CHAT,
  fetchIn,
  MESSAGES,
  streamEnd,
  streamHas,
} from '../support/requests.ts'
import {
  askChat,
  type ChatAnswer,
  compareAnswer,
  isRight,
  openRealModel,
  openRealSite,
  REAL_FILES,
  REAL_MODEL,
  RECORDED,
  type RecordedAnswer,
  toMessages,
} from '../support/real-model.ts'
import type * as Sdks from '../support/sdks-entry.ts'
import { bundleSdks } from '../support/sdks.ts'
import type { Site } from '../support/site.ts'

const EVERYDAY = { tags: ['everyday'] }
const SLOW = { tags: ['slow'], timeout: 1_200_000 }

/** Most tokens of a recorded answer. */
const MAX_TOKENS = 48

let site: Site
let exact: Page

beforeAll(async () => {
  site = await openRealSite()
  exact = await openRealModel(site, { device: 'wasm', precision: 'exact' })
})

afterAll(() => site?.close())

const greedy = (prompt: string, fields: object = {}): object => ({
  messages: toMessages(prompt),
  temperature: 0,
  max_tokens: MAX_TOKENS,
  ...fields,
})

const textOf = ({ choices: [choice] }: ChatAnswer): string => choice?.message.content ?? ''

/** Recorded answers that ended by themselves, the shortest first. */
const whole = RECORDED.answers
  .filter(({ isWhole }) => isWhole)
  .toSorted((one, other) => one.tokens.length - other.tokens.length)

/** Text of a recorded answer all of whose tokens are text. */
const recordedText = ({ tokens }: RecordedAnswer): string => tokens.join('')

const [shortest, second, third] = whole as [RecordedAnswer, RecordedAnswer, RecordedAnswer]

test('exact answers are those of transformers, in both styles', EVERYDAY, async () => {
  for (const recorded of [shortest, second]) {
    const answer = await askChat(exact, greedy(recorded.prompt, { logprobs: true }))
    expect(compareAnswer(answer, recorded)).toEqual({ isEqual: true, margin: 0 })
    expect(answer.usage).toMatchObject({
      prompt_tokens: recorded.promptTokens,
      completion_tokens: recorded.tokens.length + 1,
    })
    const body = { model: REAL_MODEL, ...greedy(recorded.prompt) }
    const { status, text } = await fetchIn(exact, MESSAGES, body)
    expect([status, JSON.parse(text)]).toMatchObject([
      200,
      {
        content: [{ type: 'text', text: recordedText(recorded) }],
        stop_reason: 'end_turn',
        usage: { output_tokens: recorded.tokens.length + 1 },
      },
    ])
  }
})

test('stop sequences end an answer before them, in both styles', EVERYDAY, async () => {
  const text = recordedText(second)
  const stop = text.slice(-12, -6)
  const before = text.slice(0, text.indexOf(stop))
  const chat = await askChat(exact, greedy(second.prompt, { stop: ['never', stop] }))
  expect(chat.choices).toMatchObject([{ message: { content: before }, finish_reason: 'stop' }])
  const body = { model: REAL_MODEL, ...greedy(second.prompt), stop_sequences: ['never', stop] }
  const message = JSON.parse((await fetchIn(exact, MESSAGES, body)).text)
  expect(message).toMatchObject({
    content: [{ type: 'text', text: before }],
    stop_reason: 'stop_sequence',
    stop_sequence: stop,
  })
})

test('a prompt beyond the context is refused by name, in both styles', EVERYDAY, async () => {
  const body = { model: REAL_MODEL, messages: toMessages('word '.repeat(9_000)), max_tokens: 8 }
  for (const path of [CHAT, MESSAGES]) {
    const { status, text } = await fetchIn(exact, path, body)
    expect([status, JSON.parse(text).error]).toMatchObject([
      400,
      { message: expect.stringMatching(/prompt is too long: 9\d{3} tokens > 8191/) },
    ])
  }
})

test('twenty exact answers are those of transformers', SLOW, async () => {
  const compared = []
  for (const recorded of RECORDED.answers) {
    const answer = await askChat(exact, greedy(recorded.prompt, { logprobs: true }))
    expect(answer.usage.prompt_tokens).toBe(recorded.promptTokens)
    compared.push({ prompt: recorded.prompt, ...compareAnswer(answer, recorded) })
  }
  expect(compared).toHaveLength(20)
  expect(compared.filter((each) => !isRight(each))).toEqual([])
})

test('an exact answer to 2,000 tokens is that of transformers', SLOW, async () => {
  const { long } = RECORDED
  expect(long.promptTokens).toBeGreaterThan(1_900)
  const fields = { logprobs: true, max_tokens: 16 }
  const answer = await askChat(exact, greedy(long.prompt, fields))
  expect(answer.usage.prompt_tokens).toBe(long.promptTokens)
  expect(compareAnswer(answer, long)).toSatisfy(isRight)
  // Of the second time, only the last token of the prompt is computed.
  const again = await askChat(exact, greedy(long.prompt, fields))
  expect(textOf(again)).toBe(textOf(answer))
  expect(again.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(long.promptTokens - 64)
})

interface SdkPage {
  sdks: typeof Sdks
}

test('both SDKs get that text, streamed and as a whole', SLOW, async () => {
  await exact.addScriptTag({ content: await bundleSdks() })
  const texts = await exact.evaluate(
    async ([model, content, max_tokens]) => {
      const { sdks } = globalThis as unknown as SdkPage
      const options = { apiKey: 'k', dangerouslyAllowBrowser: true }
      const openai = new sdks.OpenAI({ ...options, baseURL: `${location.origin}/v1` })
      const anthropic = new sdks.Anthropic({ ...options, baseURL: location.origin })
      const messages = [{ role: 'user' as const, content }]
      const body = { model, messages, temperature: 0, max_tokens }
      const completion = await openai.chat.completions.create(body)
      let chunks = ''
      for await (const chunk of await openai.chat.completions.create({ ...body, stream: true }))
        chunks += chunk.choices[0]?.delta.content ?? ''
      const response = await openai.responses.create({
        model,
        input: content,
        temperature: 0,
        max_output_tokens: max_tokens,
      })
      const message = await anthropic.messages.create(body)
      const streamed = await anthropic.messages.stream(body).finalText()
      const [block] = message.content
      return {
        completion: completion.choices[0]?.message.content,
        chunks,
        response: response.output_text,
        message: block?.type === 'text' ? block.text : block,
        streamed,
      }
    },
    [REAL_MODEL, third.prompt, MAX_TOKENS] as const,
  )
  const text = recordedText(third)
  expect(texts).toEqual({
    completion: text,
    chunks: text,
    response: text,
    message: text,
    streamed: text,
  })
})

test('logprobs are of all tokens, in order, and shares of one', SLOW, async () => {
  const fields = { logprobs: true, top_logprobs: 20 }
  for (const sampling of [{}, { temperature: 1, seed: 7, max_tokens: 24 }]) {
    const answer = await askChat(exact, { ...greedy(shortest.prompt, fields), ...sampling })
    const content = answer.choices[0]?.logprobs?.content ?? []
    const isWhole = answer.choices[0]?.finish_reason === 'stop'
    // The token of the end has no text, so it is counted, and not listed.
    expect(content).toHaveLength(answer.usage.completion_tokens - (isWhole ? 1 : 0))
    expect(content.length).toBeGreaterThan(3)
    const bytes = content.flatMap((token) => token.bytes)
    expect(new TextDecoder().decode(Uint8Array.from(bytes))).toBe(textOf(answer))
    for (const { logprob, top_logprobs: top } of content) {
      const shares = top.map((each) => Math.exp(each.logprob))
      const sum = shares.reduce((total, share) => total + share, 0)
      expect(sum).toBeLessThanOrEqual(1.000_01)
      expect(sum).toBeGreaterThan(0.1)
      expect(top).toHaveLength(20)
      expect(shares).toEqual(shares.toSorted((one, other) => other - one))
      expect(logprob).toBeLessThanOrEqual(top[0]?.logprob ?? NaN)
    }
  }
})

test(
  'the second turn of a conversation is that of a model that has not seen the first',
  SLOW,
  async () => {
    const turns = async (page: Page) => {
      const first = toMessages('Name three animals that live in the sea.')
      const answer = await askChat(page, greedy('', { messages: first }))
      const messages = [
        ...first,
        { role: 'assistant', content: textOf(answer) },
        ...toMessages('Which of them is the largest?'),
      ]
      return { messages, answer: await askChat(page, greedy('', { messages })) }
    }
    const { messages, answer } = await turns(exact)
    const { cached_tokens: cached } = answer.usage.prompt_tokens_details
    expect(cached).toBeGreaterThan(answer.usage.prompt_tokens / 2)
    const cold = await openRealModel(site, { device: 'wasm', precision: 'exact' })
    const other = await askChat(cold, greedy('', { messages }))
    await cold.context().close()
    expect(other.usage.prompt_tokens_details.cached_tokens).toBe(0)
    expect(textOf(other)).toBe(textOf(answer))
  },
)

/** Returns the text of a stream of messages. */
const textOfMessages = (events: string): string =>
  Array.from(
    events.matchAll(/"type":"text_delta","text":("(?:[^"\\]|\\.)*")/g),
    ([, part = '']) => JSON.parse(part) as string,
  ).join('')

test('an aborted answer leaves the others and its seat', SLOW, async () => {
  const story = { messages: toMessages('Write a long story about a fox.'), temperature: 0 }
  for (const name of ['one', 'two', 'three', 'four'])
    await beginStream(exact, name, REAL_MODEL, { ...story, max_tokens: 2_000 })
  await beginStream(exact, 'waits', REAL_MODEL, greedy(shortest.prompt))
  for (const name of ['one', 'two', 'three', 'four']) await streamHas(exact, name, 'text_delta')
  for (const name of ['one', 'two', 'three', 'four']) await abortStream(exact, name)
  expect(textOfMessages((await streamEnd(exact, 'waits')).text)).toBe(recordedText(shortest))
  for (const name of ['one', 'two', 'three', 'four'])
    expect((await streamEnd(exact, name)).end).toBe('aborted')
})

/** Prompts whose answers repeat what was said, so that drafts of it are right. */
const REPEATING = [
  'Repeat this sentence three times: The quick brown fox jumps over the lazy dog near the river.',
  'Write this list again, and add a fruit: apples, pears, plums, cherries, figs, grapes, melons.',
]

/** Number of answers on WebGPU: a software adapter computes a few tokens a second. */
const WEBGPU_ANSWERS = 3

interface InPage {
  server: Server
}

test('four answers at once are those of one after another', SLOW, async () => {
  const [four, rest] = [RECORDED.answers.slice(0, 4), RECORDED.answers.slice(4, 8)]
  for (const group of [four, rest]) {
    const answers = await Promise.all(
      group.map(({ prompt }) => askChat(exact, greedy(prompt, { logprobs: true }))),
    )
    const compared = answers.map((answer, at) => compareAnswer(answer, group[at]!))
    expect(compared.filter((each) => !isRight(each))).toEqual([])
  }
})

/** Topics of constrained answers. */
const TOPICS = ['a cat', 'a city', 'a song', 'a storm', 'a cook', 'a train', 'a tree', 'a game']

/** Number of constrained answers that are checked, and of those that are asked at once. */
const CONSTRAINED = 100
const AT_ONCE = 4

const PERSON = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 20 },
    kind: { enum: ['animal', 'place', 'thing', 'person'] },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    tags: { type: 'array', items: { type: 'string', maxLength: 10 }, maxItems: 2 },
    home: {
      type: ['object', 'null'],
      properties: { city: { type: 'string', maxLength: 15 } },
      required: ['city'],
      additionalProperties: false,
    },
  },
  required: ['name', 'kind', 'age', 'tags', 'home'],
  additionalProperties: false,
}

const FIND = {
  type: 'object',
  properties: {
    query: { type: 'string', maxLength: 20 },
    limit: { type: 'integer', minimum: 1, maximum: 9 },
  },
  required: ['query'],
  additionalProperties: false,
}

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
const isValid = { save: ajv.compile(PERSON), find: ajv.compile(FIND) }

/** Samples constrained answers in the default precision, each with a seed of its own. */
async function sampleAnswers(fieldsOf: (topic: string) => object): Promise<ChatAnswer[]> {
  const page = await openRealModel(site, { device: 'wasm' })
  const answers: ChatAnswer[] = []
  while (answers.length < CONSTRAINED) {
    const seeds = Array.from({ length: AT_ONCE }, (_, at) => answers.length + at)
    const asked = seeds.map((seed) => {
      const fields = fieldsOf(TOPICS[seed % TOPICS.length]!)
      return askChat(page, { temperature: 1, seed, max_tokens: 300, ...fields })
    })
    answers.push(...(await Promise.all(asked)))
  }
  await page.context().close()
  return answers
}

test('sampled answers keep a schema, each of them', SLOW, async () => {
  const answers = await sampleAnswers((topic) => ({
    messages: toMessages(`Describe ${topic} in JSON.`),
    response_format: { type: 'json_schema', json_schema: { name: 'it', schema: PERSON } },
  }))
  for (const text of answers.map(textOf)) expect(isValid.save(JSON.parse(text)), text).toBe(true)
})

test('sampled calls of required tools are valid, each of them', SLOW, async () => {
  const answers = await sampleAnswers((topic) => ({
    messages: toMessages(`Save ${topic} for me.`),
    tools: [
      { type: 'function', function: { name: 'save', parameters: PERSON } },
      { type: 'function', function: { name: 'find', parameters: FIND } },
    ],
    tool_choice: 'required',
    parallel_tool_calls: false,
  }))
  for (const { choices } of answers) {
    expect(choices).toMatchObject([
      { finish_reason: 'tool_calls', message: { tool_calls: [{ function: {} }] } },
    ])
    for (const { function: call } of choices[0]?.message.tool_calls ?? [])
      expect(
        isValid[call.name as keyof typeof isValid](JSON.parse(call.arguments)),
        JSON.stringify(call),
      ).toBe(true)
  }
})

test('on WebGPU, exact answers are those of transformers as well', SLOW, async () => {
  const page = await openRealModel(site, { device: 'webgpu', precision: 'exact' })
  for (const recorded of whole.slice(0, WEBGPU_ANSWERS)) {
    const answer = await askChat(page, greedy(recorded.prompt, { logprobs: true }))
    expect(compareAnswer(answer, recorded)).toSatisfy(isRight)
  }
  const chosen = await page.evaluate(
    async (tag) => (await (globalThis as unknown as InPage).server.explain(tag)).chosen,
    REAL_MODEL,
  )
  expect(chosen).toBe('q4_1-webgpu')
  await page.context().close()
})

test('drafts change no token of an answer', SLOW, async () => {
  const scripts = join(import.meta.dirname, '../../node_modules/.cache/inorigin-real')
  await buildScripts(scripts, { worker: '../support/real-engine.ts' }, 'error')
  const own = await openRealSite({ folders: { '/engine/': scripts } })
  const page = await own.open()
  const answer = (drafts: boolean): Promise<EngineResult> => {
    const order = { files: REAL_FILES, drafts, prompts: REPEATING, maxTokens: 64 }
    return page.evaluate(
      (given) =>
        new Promise<EngineResult>((resolve, reject) => {
          const worker = new Worker('/engine/worker.js', { type: 'module' })
          worker.onmessage = ({ data }) => {
            worker.terminate()
            if (data.result) resolve(data.result)
            else reject(new Error(data.error))
          }
          worker.onerror = ({ message }) => reject(new Error(message))
          worker.postMessage(given)
        }),
      order,
    )
  }
  const [plain, drafted] = [await answer(false), await answer(true)]
  await own.close()
  expect(drafted.texts).toEqual(plain.texts)
  expect(plain.passes).toBeGreaterThanOrEqual(plain.tokens)
  expect(drafted.passes).toBeLessThan(plain.passes)
})
