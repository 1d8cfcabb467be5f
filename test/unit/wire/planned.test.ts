/** The wire above what plans and reads real answers: only the model is a script. */
import { describe, expect, it } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { assertSchemaSupported } from '../../../src/engine/schema.ts'
import { InoriginError } from '../../../src/error.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { checkResponseStream } from '../../support/responses-grammar.ts'
import { scripted } from '../generation/scripted.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import type { ScriptedHost } from './scripted-host.ts'
import { WEATHER_SCHEMA } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'

/** Knows of tools and of thoughts. */
const TEMPLATE =
  "{% if tools %}<tool_call>{'arguments'{% endif %}{{ message.tool_calls }}<think></think>"

/** A host that accepts as the real one does; `engine` is asked what the wire made of a body. */
function planningHost(engine: Engine): ScriptedHost {
  return scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        const planned = await planGeneration(engine, request)
        const limits = { maxOutputTokens: 100, plan: planned }
        return { ignored: [], events: runGeneration(engine, request, limits, signal) }
      },
      countTokens: async (request) => (await planGeneration(engine, request)).prompt.tokens.length,
    },
  })
}

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
  '\n',
  '<tool_call>',
  '\n{"name": "weather", "argu',
  'ments": {"city": "Os',
  'lo"}}\n',
  '</tool_call>',
  '\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
]
const engine = () =>
  scripted(PIECES, {
    template: TEMPLATE,
    // What the real one finds out in the form of a grammar.
    refuse: (constraint) =>
      JSON.stringify(constraint).includes('uniqueItems') ? new Error('No.') : undefined,
  })

const chatTools = [
  { type: 'function', function: { name: 'weather', parameters: WEATHER_SCHEMA } },
  { type: 'function', function: { name: 'now' } },
]
const messageTools = [
  { name: 'weather', input_schema: WEATHER_SCHEMA },
  { name: 'now', input_schema: { type: 'object' } },
]
const responseTools = chatTools.map(({ type, function: named }) => ({ type, ...named }))

describe('thoughts and calls as a model writes them', () => {
  it('are a chat completion', async () => {
    const body = chatOf({ stream: true, tools: chatTools, reasoning_effort: 'low' })
    const seen = checkChatStream(await (await send(planningHost(engine()), CHAT, { body })).text())
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
    const thinking = { type: 'enabled', budget_tokens: 50 }
    const body = messageOf({ stream: true, tools: messageTools, thinking })
    const raw = await (await send(planningHost(engine()), MESSAGES, { body })).text()
    expect(checkMessageStream(raw)).toMatchObject({
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
    const body = {
      model: '@acme/tiny',
      input: 'Hi',
      stream: true,
      tools: responseTools,
      reasoning: { effort: 'low' },
    }
    const raw = await (await send(planningHost(engine()), RESPONSES, { body })).text()
    expect(checkResponseStream(raw).items).toMatchObject([
      { type: 'reasoning' },
      { type: 'message', text: 'Let me look.' },
      { type: 'function_call', name: 'weather', text: '{"city": "Oslo"}' },
      { type: 'function_call', name: 'now', text: '{}' },
    ])
  })

  it('stop behind the first call where several may not be', async () => {
    const tool_choice = { type: 'auto', disable_parallel_tool_use: true }
    const body = messageOf({ stream: true, tools: messageTools, tool_choice })
    const raw = await (await send(planningHost(engine()), MESSAGES, { body })).text()
    expect(checkMessageStream(raw).blocks.filter(({ type }) => type === 'tool_use')).toHaveLength(1)
  })

  it.each([
    ['a result of its own', ['\n', 'It is', ' 21 degrees.']],
    [
      'a call of a tool that is not there',
      ['\n<tool_call>\n{"name": "nothing", "arguments": {}}\n</tool_call>'],
    ],
  ])('end where the model goes on behind them with %s', async (_, more) => {
    const writer = () => scripted([...PIECES, ...more, ' And', ' on.'], { template: TEMPLATE })
    const seen = checkChatStream(
      await (
        await send(planningHost(writer()), CHAT, {
          body: chatOf({ stream: true, tools: chatTools }),
        })
      ).text(),
    )
    expect(seen).toMatchObject({ content: 'Let me look.', finishReason: 'tool_calls' })
    expect(seen.toolCalls).toHaveLength(2)
    const engineOf = writer()
    const body = messageOf({ tools: messageTools })
    const message = await (await send(planningHost(engineOf), MESSAGES, { body })).json()
    expect(message.content.map(({ type }: { type: string }) => type)).toEqual([
      'text',
      'tool_use',
      'tool_use',
    ])
    expect([message.stop_reason, engineOf.closed]).toEqual(['tool_use', true])
    expect(engineOf.given).toBeLessThan(PIECES.length + more.length + 2)
  })

  it('are text where no tool may be called', async () => {
    const body = messageOf({ stream: true, tools: messageTools, tool_choice: { type: 'none' } })
    const raw = await (await send(planningHost(engine()), MESSAGES, { body })).text()
    expect(checkMessageStream(raw).blocks.map(({ type }) => type)).toEqual(['text'])
  })

  it('leave a stop text in a message', async () => {
    const body = messageOf({ stream: true, stop_sequences: [' look'] })
    const raw = await (await send(planningHost(engine()), MESSAGES, { body })).text()
    expect(checkMessageStream(raw)).toMatchObject({
      text: expect.stringMatching(/Let me$/),
      stopReason: 'stop_sequence',
      stopSequence: ' look',
    })
  })
})

describe('what is refused before anything is computed', () => {
  const unique = { type: 'object', properties: { x: { type: 'array', uniqueItems: true } } }
  const named = (name: string) => ({ type: 'function', function: { name } })
  const format = (schema: object) => ({ type: 'json_schema', json_schema: { name: 'x', schema } })

  it.each([
    [
      'tools[1].function.parameters.properties.x.uniqueItems',
      {
        tools: [named('a'), { type: 'function', function: { name: 'f', parameters: unique } }],
        tool_choice: 'required',
      },
    ],
    [
      'response_format.json_schema.schema.properties.x.uniqueItems',
      { response_format: format(unique) },
    ],
    ['tools[1].function.name', { tools: [named('a'), named('a')] }],
    ['tools[0].function.name', { tools: [named('a b')] }],
    ['tool_choice', { tools: [named('a')], tool_choice: named('b') }],
    ['tool_choice', { tool_choice: 'required' }],
  ])('in a chat completion: %s', async (param, fields) => {
    const response = await send(planningHost(engine()), CHAT, { body: chatOf(fields) })
    const error = await errorOf(response, 400)
    expect(error.param).toBe(param)
  })

  it.each([
    [
      'tools[0].input_schema.properties.x.uniqueItems',
      {
        tools: [{ name: 'f', input_schema: unique }],
        tool_choice: { type: 'any' },
      },
    ],
    [
      'output_config.format.schema.properties.x.uniqueItems',
      {
        output_config: { format: { type: 'json_schema', schema: unique } },
      },
    ],
    ['tools[1].name', { tools: [messageTools[0], messageTools[0]] }],
    ['tool_choice', { tools: messageTools, tool_choice: { type: 'tool', name: 'b' } }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
  ])('in a message, counted or answered: %s', async (param, fields) => {
    for (const path of [MESSAGES, `${MESSAGES}/count_tokens`]) {
      const response = await send(planningHost(engine()), path, { body: messageOf(fields) })
      expect((await errorOf(response, 400)).param).toBe(param)
    }
  })

  it('in a response', async () => {
    const body = {
      model: '@acme/tiny',
      input: 'Hi',
      text: { format: { type: 'json_schema', name: 'x', schema: unique } },
    }
    const error = await errorOf(await send(planningHost(engine()), RESPONSES, { body }), 400)
    expect(error.param).toBe('text.format.schema.properties.x.uniqueItems')
    expect(error.message).toContain('text.format.schema.properties.x.uniqueItems')
  })
})

it('the schema at fault is one that cannot be kept', () => {
  expect(() => assertSchemaSupported({ type: 'array', uniqueItems: true }, 'x')).toThrow(
    InoriginError,
  )
})

describe('what a model is told', () => {
  const turns = async (path: string, body: object) => {
    const asked = engine()
    await (await send(planningHost(asked), path, { body })).text()
    return asked.conversations[0]
  }

  it('is the same whatever the style', async () => {
    const chat = await turns(
      CHAT,
      chatOf({
        tools: chatTools,
        messages: [
          { role: 'developer', content: 'S' },
          { role: 'user', content: 'Oslo?' },
          {
            role: 'assistant',
            content: 'A',
            reasoning_content: 'Hm.',
            tool_calls: [
              { id: 'call_1', type: 'function', function: { name: 'now', arguments: '{}' } },
            ],
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'noon' },
        ],
      }),
    )
    const message = await turns(
      MESSAGES,
      messageOf({
        tools: [messageTools[0], { name: 'now', input_schema: { type: 'object', properties: {} } }],
        system: [{ type: 'text', text: 'S' }],
        messages: [
          { role: 'user', content: 'Oslo?' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Hm.', signature: 's' },
              { type: 'text', text: 'A' },
              { type: 'tool_use', id: 'toolu_1', name: 'now', input: {} },
            ],
          },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'noon' }],
          },
        ],
      }),
    )
    const response = await turns(RESPONSES, {
      model: '@acme/tiny',
      tools: responseTools,
      instructions: 'S',
      input: [
        { role: 'user', content: 'Oslo?' },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] },
        { role: 'assistant', content: 'A' },
        { type: 'function_call', call_id: 'call_1', name: 'now', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'noon' },
      ],
    })
    expect(message).toEqual(chat)
    expect(response).toEqual(chat)
    expect(chat?.messages).toHaveLength(4)
  })
})
