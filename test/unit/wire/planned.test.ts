/** Answers of the wire above what plans and parses completions; the model writes a script. */
import { describe, expect, it } from 'vitest'
import type { JsonConstraint } from '../../../src/constraint/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { InoriginError } from '../../../src/error.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { checkResponseStream } from '../../support/responses-grammar.ts'
import { scripted } from '../generation/scripted.ts'
import { bodyOf } from './field-table.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { Script, ScriptedHost } from './scripted-host.ts'
import { CALLING, THINKING, WEATHER_SCHEMA } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'

/** A template with tools and thoughts. */
const TEMPLATE =
  "{% if tools %}<tool_call>{'arguments'{% endif %}{{ message.tool_calls }}<think></think>"

/** A host that accepts requests as the real one does. */
function planningHost(engine: Engine): ScriptedHost {
  return scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        const planned = await planGeneration(engine, request)
        const limits = { maxOutputTokens: 100, plan: planned }
        return { events: runGeneration(engine, request, limits, signal) }
      },
      countTokens: async (request) => (await planGeneration(engine, request)).prompt.tokens.length,
    },
  })
}

const CALLS = [
  '\n<tool_call>',
  '\n{"name": "weather", "argu',
  'ments": {"city": "Os',
  'lo"}}\n',
  '</tool_call>',
  '\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
]
const PIECES = [
  '<think>',
  '\n',
  'Two cities',
  '.',
  '\n',
  '</think>',
  '\n\n',
  'Let me',
  ' look.',
  ...CALLS,
]

const engine = (more: readonly string[] = []) =>
  scripted([...PIECES, ...more], {
    template: TEMPLATE,
    refuse: refuseUniqueItems,
  })

/** Refuses strict schemas as the compiler does: by the place of what cannot be kept. */
function refuseUniqueItems(constraint: unknown): Error | undefined {
  if (typeof constraint !== 'object' || constraint === null) return undefined
  const { type, strict, schema, path } = constraint as Partial<JsonConstraint>
  if (type !== 'json') return Object.values(constraint).map(refuseUniqueItems).find(Boolean)
  if (!strict || !JSON.stringify(schema).includes('uniqueItems')) return undefined
  const param = `${path}.properties.x`
  return new InoriginError('invalid_request', `uniqueItems of ${param} cannot be kept.`, { param })
}
const answer = (path: string, body: object) => send(planningHost(engine()), path, { body })
const chatStream = async (fields: object) =>
  checkChatStream(await (await answer(CHAT, chatOf({ ...fields, stream: true }))).text())
const messageStream = async (fields: object) =>
  checkMessageStream(await (await answer(MESSAGES, messageOf({ ...fields, stream: true }))).text())

const functions = [{ name: 'weather', parameters: WEATHER_SCHEMA }, { name: 'now' }]
const chatTools = functions.map((each) => ({ type: 'function', function: each }))
const responseTools = functions.map((each) => ({ type: 'function', ...each }))
const messageTools = [
  { name: 'weather', input_schema: WEATHER_SCHEMA },
  { name: 'now', input_schema: { type: 'object' } },
]
const thinking = { type: 'enabled', budget_tokens: 50 }

describe('thoughts and calls as a model writes them', () => {
  it('are a chat completion', async () => {
    const seen = await chatStream({ tools: chatTools, reasoning_effort: 'low' })
    expect(seen).toMatchObject({
      reasoning: expect.stringContaining('Two cities.'),
      content: 'Let me look.',
      toolCalls: [
        { name: 'weather', arguments: '{"city": "Oslo"}' },
        { name: 'now', arguments: '{}' },
      ],
      finishReason: 'tool_calls',
    })
    expect(seen.toolCalls[0]?.id).toMatch(/^call_\w{24}$/)
  })

  it('are a message', async () => {
    expect(await messageStream({ tools: messageTools, thinking })).toMatchObject({
      blocks: [
        { type: 'thinking', text: expect.stringContaining('Two cities.') },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', name: 'weather', text: '{"city": "Oslo"}' },
        { type: 'tool_use', name: 'now', text: '{}' },
      ],
      stopReason: 'tool_use',
    })
  })

  it('are a response', async () => {
    const fields = { stream: true, tools: responseTools, reasoning: { effort: 'low' } }
    const raw = await (await answer(RESPONSES, bodyOf(RESPONSES, fields))).text()
    expect(checkResponseStream(raw).items).toMatchObject([
      { type: 'reasoning' },
      { type: 'message', text: 'Let me look.' },
      { type: 'function_call', name: 'weather', text: '{"city": "Oslo"}' },
      { type: 'function_call', name: 'now', text: '{}' },
    ])
  })

  it('end with the first call where only one is allowed', async () => {
    const tool_choice = { type: 'auto', disable_parallel_tool_use: true }
    const { blocks } = await messageStream({ tools: messageTools, tool_choice })
    expect(blocks.filter(({ type }) => type === 'tool_use')).toHaveLength(1)
  })

  it.each([
    ['a result of its own', ['\n', 'It is', ' 21 degrees.']],
    ['a call of another tool', ['\n<tool_call>\n{"name": "no", "arguments": {}}\n</tool_call>']],
  ])('end where the model adds %s', async (_, more) => {
    const writer = () => engine([...more, ' And', ' on.'])
    const stream = chatOf({ stream: true, tools: chatTools })
    const chat = await send(planningHost(writer()), CHAT, { body: stream })
    const seen = checkChatStream(await chat.text())
    expect(seen).toMatchObject({ content: 'Let me look.', finishReason: 'tool_calls' })
    expect(seen.toolCalls).toHaveLength(2)
    const engineOf = writer()
    const body = messageOf({ tools: messageTools })
    const message = await (await send(planningHost(engineOf), MESSAGES, { body })).json()
    const types = message.content.map(({ type }: { type: string }) => type)
    expect(types).toEqual(['text', 'tool_use', 'tool_use'])
    expect([message.stop_reason, engineOf.closed]).toEqual(['tool_use', true])
    expect(engineOf.given).toBeLessThan(PIECES.length + more.length + 2)
  })

  it('are text where no tool may be called', async () => {
    const { blocks } = await messageStream({ tools: messageTools, tool_choice: { type: 'none' } })
    expect(blocks.map(({ type }) => type)).toEqual(['text'])
  })

  it('end before a stop sequence', async () => {
    expect(await messageStream({ stop_sequences: [' look'] })).toMatchObject({
      text: expect.stringMatching(/Let me$/),
      stopReason: 'stop_sequence',
      stopSequence: ' look',
    })
  })
})

const start = { type: 'start', promptTokens: 12, cachedTokens: 5 } as const
const stop = { type: 'finish', reason: 'stop', stopSequence: null, usage: USAGE } as const

describe('an answer of other parts', () => {
  it.each<[string, Script, string[]]>([
    ['thoughts before a text', THINKING, ['thinking', 'text']],
    [
      'thoughts before calls',
      [...CALLING.slice(0, 3), ...CALLING.slice(5)],
      ['thinking', 'tool_use', 'tool_use'],
    ],
    [
      'a text before thoughts',
      [start, { type: 'text', text: 'a' }, { type: 'reasoning', text: 'b' }, stop],
      ['text', 'thinking'],
    ],
    ['calls alone', [start, ...CALLING.slice(5)], ['tool_use', 'tool_use']],
  ])('has a block for each part in a stream of messages: %s', async (_, script, types) => {
    const body = messageOf({ stream: true, thinking })
    const raw = await (await send(scriptedHost({ script }), MESSAGES, { body })).text()
    expect(checkMessageStream(raw).blocks.map(({ type }) => type)).toEqual(types)
  })

  it('has an empty content and no calls in a chat if the model writes nothing', async () => {
    const host = scriptedHost({ script: [start, stop] })
    const { choices } = await (await send(host, CHAT, { body: chatOf() })).json()
    expect(choices[0].message).toEqual({ role: 'assistant', content: '', refusal: null })
  })
})

describe('a request that cannot be planned is refused', () => {
  const unique = { type: 'object', properties: { x: { type: 'array', uniqueItems: true } } }
  const named = (name: string, parameters?: object) => ({
    type: 'function',
    function: { name, parameters, strict: true },
  })
  const format = (schema: object) => ({
    type: 'json_schema',
    json_schema: { name: 'x', schema, strict: true },
  })
  const [weather] = messageTools

  it.each<[path: string, param: string, fields: object]>([
    [
      CHAT,
      'tools[1].function.parameters.properties.x',
      { tools: [named('a'), named('f', unique)], tool_choice: 'required' },
    ],
    [CHAT, 'response_format.json_schema.schema.properties.x', { response_format: format(unique) }],
    [CHAT, 'tools[1].function.name', { tools: [named('a'), named('a')] }],
    [CHAT, 'tools[0].function.name', { tools: [named('a b')] }],
    [CHAT, 'tool_choice', { tools: [named('a')], tool_choice: named('b') }],
    [CHAT, 'tool_choice', { tool_choice: 'required' }],
    [
      CHAT,
      'functions[1].parameters.properties.x',
      { functions: [{ name: 'a' }, { name: 'f', parameters: unique, strict: true }] },
    ],
    [CHAT, 'functions[1].name', { functions: [{ name: 'a' }, { name: 'a' }] }],
    [CHAT, 'function_call', { functions: [{ name: 'a' }], function_call: { name: 'b' } }],
    ...[MESSAGES, `${MESSAGES}/count_tokens`].flatMap((path): Array<[string, string, object]> => [
      [
        path,
        'tools[0].input_schema.properties.x',
        {
          tools: [{ name: 'f', input_schema: unique, strict: true }],
          tool_choice: { type: 'any' },
        },
      ],
      [
        path,
        'output_config.format.schema.properties.x',
        { output_config: { format: { type: 'json_schema', schema: unique, strict: true } } },
      ],
      [path, 'tools[1].name', { tools: [weather, weather] }],
      [path, 'tool_choice', { tools: messageTools, tool_choice: { type: 'tool', name: 'b' } }],
      [path, 'tool_choice', { tool_choice: { type: 'any' } }],
    ]),
    [
      RESPONSES,
      'text.format.schema.properties.x',
      { text: { format: { type: 'json_schema', name: 'x', schema: unique, strict: true } } },
    ],
  ])('on %s by its field %s', async (path, param, fields) => {
    const error = await errorOf(await answer(path, bodyOf(path, fields)), 400)
    expect(error.param).toBe(param)
    if (!param.endsWith('.name')) expect(error.message).toContain(param)
  })

  it('only if it is strict', async () => {
    const fields = { tools: [{ type: 'function', function: { name: 'f', parameters: unique } }] }
    expect((await answer(CHAT, chatOf(fields))).status).toBe(200)
  })
})

it('names a tool by its place among all, also those that wait', async () => {
  const input_schema = { type: 'object' }
  const tools = [
    { name: 'late', defer_loading: true, input_schema },
    { name: 'a b', input_schema },
  ]
  const host = planningHost(scripted(['Hi'], { template: TEMPLATE }))
  const error = await errorOf(await send(host, MESSAGES, { body: messageOf({ tools }) }), 400)
  expect(error).toMatchObject({ param: 'tools[1].name' })
})
