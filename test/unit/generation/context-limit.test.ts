/** The error for a prompt that does not fit into the context: what of it takes how many tokens. */
import { readFile } from 'node:fs/promises'
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import type { InoriginError } from '../../../src/error.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { ChatMessage, GenerationRequest, Tool } from '../../../src/types/index.ts'

const CONTEXT = 200

let engine: Engine
// A prompt with tools that fits needs the engine of constraints.
beforeEach(() =>
  vi.stubGlobal('fetch', async () => {
    const module = new URL('../../../src/constraint/llguidance.wasm', import.meta.url)
    return new Response(await readFile(module))
  }),
)

beforeAll(async () => {
  const folder = new URL('../../../demo/models/guide/', import.meta.url)
  const names = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']
  const texts = new Map<string, Blob>()
  for (const name of names) texts.set(name, new Blob([await readFile(new URL(name, folder))]))
  const runtime = 'http://localhost/'
  engine = await openOnnx({
    device: 'wasm',
    runtime,
    constraints: runtime,
    texts,
    maxInputTokens: CONTEXT,
  })
})

const system = (words: number): ChatMessage => ({ role: 'system', content: 'rule '.repeat(words) })
const user = (words: number): ChatMessage => ({ role: 'user', content: 'word '.repeat(words) })
const toolOf = (name: string, words = 5): Tool => ({
  name,
  description: 'use '.repeat(words),
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
})

const requestOf = (messages: ChatMessage[], tools: Tool[] = []): GenerationRequest => ({
  model: '@inorigin/guide',
  messages,
  sampling: {},
  stop: [],
  ...(tools.length > 0 && { tools: { tools, choice: 'auto', parallel: true } }),
})

const count = async (request: GenerationRequest): Promise<number> =>
  (await planGeneration(engine, request, {}, { contexts: 1_000 })).prompt.tokens.length

/** Resolves with the error, whose total must be that of its parts. */
async function refusalOf(request: GenerationRequest) {
  const error = await planGeneration(engine, request).then(
    () => Promise.reject(new Error('It fits.')),
    (thrown: InoriginError) => thrown,
  )
  expect(error).toMatchObject({ code: 'context_length_exceeded', param: 'messages' })
  const details = error.details as {
    tokens: number
    maximum: number
    parts: { tools: number; system: number; history: number }
  }
  const { tokens, maximum, parts } = details
  const { tools, system: rules, history } = parts
  expect(maximum).toBe(CONTEXT - 1)
  expect(tools + rules + history).toBe(tokens)
  const start = `prompt is too long: ${tokens} tokens > ${maximum} maximum. The prompt `
  expect(error.message.startsWith(start), error.message).toBe(true)
  expect(error.message).toContain('exceeds the context window; its tools take ')
  return { message: error.message, ...details }
}

describe('the error has the tokens of', () => {
  const tools = [toolOf('read', 40), toolOf('write')]
  const messages = [system(50), user(300)]

  test('tools, system text and history, exactly', async () => {
    const { tokens, parts, message } = await refusalOf(requestOf(messages, tools))
    const [all, rest, history] = [
      await count(requestOf(messages, tools)),
      await count(requestOf(messages)),
      await count(requestOf(messages.slice(1))),
    ]
    expect(tokens).toBe(all)
    expect(parts).toEqual({ tools: all - rest, system: rest - history, history })
    expect(parts.tools).toBeGreaterThan(40)
    expect(parts.system).toBeGreaterThan(49)
    expect(parts.history).toBeGreaterThan(300)
    expect(message).toContain(
      `its tools take ${parts.tools} tokens, its system text ${parts.system}, ` +
        `and its history ${parts.history}. Send fewer or shorter ones.`,
    )
  })

  test.each([
    ['no tools', requestOf(messages), { tools: 0 }],
    ['no system text', requestOf([user(300)], tools), { system: 0 }],
    ['no history', requestOf([system(300)]), { history: 0, tools: 0 }],
  ])('%s', async (_, request, expected) => {
    expect((await refusalOf(request)).parts).toMatchObject(expected)
  })

  test('a format among the system text', async () => {
    const enumeration = Array.from({ length: 40 }, (_unused, index) => `value ${index}`)
    const format = { type: 'json_schema', schema: { enum: enumeration } } as const
    const { parts } = await refusalOf({ ...requestOf([user(100)]), format })
    expect(parts.system).toBeGreaterThan(100)
  })

  test('a long prompt, estimated by their lengths', async () => {
    const huge = [toolOf('read', 50_000)]
    const { parts, message, tokens } = await refusalOf(
      requestOf([system(50_000), user(50_000)], huge),
    )
    expect(message).toContain('has at least that many tokens and exceeds')
    expect(message).toContain(`its tools take about ${parts.tools} tokens`)
    for (const part of Object.values(parts)) expect(part / tokens).toBeCloseTo(1 / 3, 1)
  })
})

test('a prompt of very many messages is refused before it is rendered', async () => {
  const request = requestOf(Array.from({ length: 50_000 }, () => user(1)))
  const { parts } = await refusalOf(request)
  expect(parts).toMatchObject({ tools: 0, system: 0 })
}, 10_000)

test('a prompt that fits is planned as before', async () => {
  const { prompt } = await planGeneration(engine, requestOf([system(5), user(20)]))
  expect(prompt.tokens.length).toBeLessThan(CONTEXT)
})
