/** Answers of which the prompt has the beginning. */
import { describe, expect, test } from 'vitest'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { GenerationRequest } from '../../../src/types/index.ts'
import { collect, request, type Script, scripted, TIME, use } from './scripted.ts'

const SWITCH = '{% if enable_thinking %}<think></think>'
const LLAMA = '<|start_header_id|>{% if tools %}{"name": x, "parameters": y}'
const NATIVE = "{% if tools %}<tool_call>{'arguments': {% endif %}{{ message.tool_calls }}"

async function planned(fields: Partial<GenerationRequest>, script: Script = {}) {
  const engine = scripted([], script)
  const made = await planGeneration(engine, request({ responsePrefix: 'So', ...fields }))
  return { ...made, conversations: engine.conversations }
}

test('the prompt has it behind all messages', async () => {
  const { conversations, constraint, forcedCharacters } = await planned({})
  expect(conversations).toEqual([{ messages: request().messages, responsePrefix: { text: 'So' } }])
  expect([constraint, forcedCharacters]).toEqual([null, 0])
})

test('of nothing is none', async () => {
  expect((await planned({ responsePrefix: '' })).conversations).toEqual([
    { messages: request().messages },
  ])
})

describe('reasoning', () => {
  test.each([undefined, 0, 100])(
    'is switched off, whatever was asked for: %s',
    async (reasoningBudget) => {
      const { conversations, reasoning, constraint } = await planned(
        { reasoningBudget },
        { template: SWITCH, opening: 'A:<think>\n\n</think>\n\n' },
      )
      expect(conversations).toEqual([
        { messages: request().messages, thinking: false, responsePrefix: { text: 'So' } },
      ])
      expect([reasoning, constraint]).toEqual([null, null])
    },
  )

  test('that a template opens is closed in the prompt', async () => {
    const { conversations } = await planned(
      {},
      { template: '<think></think>', opening: 'A:<think>\n' },
    )
    expect(conversations.at(-1)?.responsePrefix).toEqual({ block: '\n</think>\n\n', text: 'So' })
  })

  test('is not looked for in what follows', async () => {
    const events = await collect(scripted([' <think>', 'x'], { template: SWITCH }), {
      responsePrefix: 'Say',
    })
    expect(events.filter(({ type }) => type === 'text' || type === 'reasoning')).toEqual([
      { type: 'text', text: ' <think>' },
      { type: 'text', text: 'x' },
    ])
  })
})

test('stop texts are looked for in what follows alone', async () => {
  const events = await collect(scripted(['op', ' now', ' ST', 'OP', ' x']), {
    responsePrefix: 'ST',
    stop: ['STop', 'STOP'],
  })
  const text = events.map((event) => (event.type === 'text' ? event.text : '')).join('')
  expect(text).toBe('op now ')
  expect(events.at(-1)).toMatchObject({ reason: 'stop_sequence', stopSequence: 'STOP' })
})

describe('tools', () => {
  const tools = use({ tools: [TIME] })

  test('may be called behind it', async () => {
    const call = ['<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>']
    const events = await collect(scripted([' I look.\n', ...call], { template: NATIVE }), {
      responsePrefix: 'Well,',
      tools,
    })
    expect(events).toContainEqual({ type: 'text', text: ' I look.' })
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_call', name: 'get_time' }))
  })

  test('whose calls are a whole answer may not', async () => {
    const text = '{"name": "get_time", "parameters": {}}'
    expect(await planned({ tools }, { template: LLAMA })).toMatchObject({
      tools: null,
      constraint: null,
    })
    const events = await collect(scripted([text], { template: LLAMA }), {
      responsePrefix: 'Like ',
      tools,
    })
    expect(events).toContainEqual({ type: 'text', text })
  })

  test.each<[string, Partial<GenerationRequest>]>([
    ['tool_choice', { tools: use({ tools: [TIME], choice: 'required' }) }],
    ['tool_choice', { tools: use({ tools: [TIME], choice: 'required', only: ['get_time'] }) }],
    ['format', { format: { type: 'json_object' } }],
    ['format', { format: { type: 'json_schema', schema: {} } }],
    ['format', { format: { type: 'grammar', grammar: 'root ::= "a"' } }],
  ])('%s of a whole answer is refused: %j', async (param, fields) => {
    await expect(planned(fields)).rejects.toMatchObject({
      kind: 'invalid_request',
      param,
      message: `${param} cannot be combined with a prefilled assistant message. Remove one of them.`,
    })
    await expect(planned({ ...fields, responsePrefix: undefined })).resolves.toBeDefined()
  })
})
