import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { ChatMessage, GenerationRequest, Tool } from '../../../src/types/index.ts'
import { collect, request, type Script, scripted, sum, TIME, use, WEATHER } from './scripted.ts'

/** Writes tools, calls and results. */
const NATIVE =
  "{{ tools | tojson }}{# <tool_call>{'arguments': #}" +
  '{% for m in messages %}{{ m | tojson }}{% endfor %}'

/** Plans a request, and returns the plan with the engine. */
async function plan(fields: Partial<GenerationRequest>, script: Script = {}) {
  const engine = scripted([], script)
  return { engine, ...(await planGeneration(engine, request(fields))) }
}

/** Returns the conversations that the engine received. */
const conversationsOf = async (...given: Parameters<typeof plan>) =>
  (await plan(...given)).engine.conversations

/** Returns the messages that the engine received. */
const messagesOf = async (fields: Partial<GenerationRequest>, template: string | null = '') =>
  (await conversationsOf(fields, { template }))[0]?.messages ?? []

const LOOP: ChatMessage[] = [
  { role: 'user', content: 'Weather?' },
  {
    role: 'assistant',
    content: 'I look.',
    toolCalls: [
      { id: 'a', name: 'get_weather', arguments: '{"city": "Rome"}' },
      { id: 'b', name: 'get_time', arguments: '{}' },
    ],
  },
  { role: 'tool', toolCallId: 'a', name: 'get_weather', content: 'Sun' },
  { role: 'tool', toolCallId: 'b', name: 'get_time', content: 'no clock', isError: true },
  { role: 'user', content: 'And?' },
]

describe('Tools', () => {
  const tools = use({ tools: [WEATHER, TIME] })
  const failed = LOOP.with(3, { ...LOOP[3], content: 'Error: no clock' } as ChatMessage)

  test('are left to a chat template that writes them', async () => {
    const conversation = { messages: failed, tools: [WEATHER, TIME] }
    expect(await conversationsOf({ messages: LOOP, tools }, { template: NATIVE })).toEqual([
      conversation,
    ])
  })

  const SYSTEM = `# Tools
You may call these functions:
{"name":"get_time","parameters":{"type":"object","properties":{}}}
To call one, answer with:
<tool_call>
{"name": "the_name", "arguments": {"argument": "value"}}
</tool_call>`

  test.each<[string | null, string]>([
    ['', 'another template'],
    ['{% if tools %}<|call|>', 'a template with a format of its own'],
    ["<tool_call>{'arguments':", 'a template that only mentions them'],
    [null, 'no template'],
  ])('are listed in the system message with %j, %s', async (template) => {
    const system = { role: 'system', content: SYSTEM }
    expect(await conversationsOf({ tools: use({ tools: [TIME] }) }, { template })).toEqual([
      { messages: [system, { role: 'user', content: 'Hi' }] },
    ])
  })

  test('are listed after the text of the system message', async () => {
    const messages: ChatMessage[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]
    const [system] = await messagesOf({ messages, tools })
    expect(system?.content).toMatch(/^Be brief\.\n\n# Tools\n/)
  })

  const results: ChatMessage = {
    role: 'user',
    content:
      '<tool_response>\nSun\n</tool_response>\n<tool_response>\nError: no clock\n</tool_response>',
  }
  const calls =
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\n' +
    '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'

  test('without a template, calls and results become text', async () => {
    const called = { role: 'assistant', content: `I look.\n${calls}` }
    expect(await messagesOf({ messages: LOOP }, null)).toEqual([LOOP[0], called, results, LOOP[4]])
  })

  test('without a template, calls that a limit has cut become text as they are', async () => {
    const toolCalls = [{ id: 'a', name: 'get_time', arguments: '{"zone": "Eu' }]
    const messages = LOOP.with(1, { role: 'assistant', content: '', toolCalls })
    const [, called] = await messagesOf({ messages }, null)
    const content = '<tool_call>\n{"name": "get_time", "arguments": {"zone": "Eu}\n</tool_call>'
    expect(called).toEqual({ role: 'assistant', content })
  })

  const RESULTS = "{% for m in messages if m.role == 'tool' %}{{ m.content }}{% endfor %}"
  const python = '<|tool_call_start|>[get_weather(city="Rome"), get_time()]<|tool_call_end|>'
  test.each([
    ['', [...LOOP.slice(0, 2), results, LOOP[4]], calls],
    [`List of tools: {{ tools }}${RESULTS}`, failed, python],
    ['List of tools: {{ tools }}', [...LOOP.slice(0, 2), results, LOOP[4]], python],
  ])('have calls that the engine writes after %j', async (template, messages, written) => {
    const [conversation] = await conversationsOf({ messages: LOOP }, { template })
    expect(conversation?.messages).toEqual(messages)
    const [, called] = LOOP
    if (called?.role !== 'assistant' || !called.toolCalls) throw new Error('no calls')
    expect(conversation?.serializeCalls?.(called.toolCalls)).toBe(written)
  })

  test.each([use({ choice: 'none' }), use({ tools: [] })])(
    'that may not be called are left out: %j',
    async (unused) => {
      for (const template of [NATIVE, '']) {
        const { engine, ...planned } = await plan({ tools: unused }, { template })
        expect(engine.conversations).toEqual([{ messages: request().messages }])
        expect(planned).toMatchObject({ tools: null, visible: [], constraint: null })
      }
    },
  )

  test('are checked with the constraint of the answer and its reasoning', async () => {
    const template = `${NATIVE}<think></think>`
    const { engine, constraint } = await plan({ tools: use() }, { template })
    expect(constraint).toMatchObject({ type: 'choice' })
    expect(engine.checked).toEqual([constraint])
  })

  test('are all listed although only some may be called', async () => {
    const only = use({ only: ['get_time'] })
    const { engine, tools: planned } = await plan({ tools: only }, { template: NATIVE })
    expect(engine.conversations[0]?.tools).toHaveLength(3)
    expect(planned?.callable).toMatchObject([TIME])
  })
})

describe('The format of an answer', () => {
  const ask = (content: string, format: GenerationRequest['format']) =>
    messagesOf({ messages: [{ role: 'user', content }], format })
  const schema = { type: 'array', items: { type: 'integer' } }
  const long = { enum: Array.from({ length: 500 }, (_, index) => `value ${index}`) }

  test.each<[string, GenerationRequest['format'], string | undefined]>([
    [
      'Count.',
      { type: 'json_schema', schema },
      `Answer in JSON, by this schema: ${JSON.stringify(schema)}`,
    ],
    ['Count.', { type: 'json_object' }, 'Answer with a JSON object.'],
    ['Give me JSON.', { type: 'json_object' }, undefined],
    ['Give me JSON.', { type: 'json_schema', schema: long }, 'Answer in JSON.'],
    ['Count.', { type: 'grammar', grammar: 'root ::= "a"' }, undefined],
  ])('is described to the model if it needs that: %j, %o', async (content, format, system) => {
    const described = system === undefined ? [] : [{ role: 'system', content: system }]
    expect(await ask(content, format)).toEqual([...described, { role: 'user', content }])
  })
})

test('A type of null in the parameters of a tool counts as absent', async () => {
  const parameters = { type: null, properties: { city: { type: 'string' } } }
  const tools = use({ tools: [{ name: 'f', parameters }] })
  expect((await plan({ tools }, { template: NATIVE })).tools?.callable).toHaveLength(1)
})

describe('A request is refused', () => {
  const refused = (fields: Partial<GenerationRequest>, refuse?: () => Error): Promise<unknown> =>
    plan(fields, { template: NATIVE, ...(refuse && { refuse }) }).then(
      () => null,
      (error: unknown) => error,
    )
  const f = (parameters: Tool['parameters']): Tool => ({ name: 'f', parameters })

  test.each([
    ['a tool that does not exist', use({ only: ['delete'] }), 'tool_choice'],
    ['a call without tools', use({ tools: [], choice: 'required' }), 'tool_choice'],
    ['a call of none of the tools', use({ only: [], choice: 'required' }), 'tool_choice'],
    ['a name of two tools', use({ tools: [TIME, WEATHER, TIME] }), 'tools[2].name'],
    ['an invalid name', use({ tools: [TIME, { ...TIME, name: 'a b' }] }), 'tools[1].name'],
    [
      'arguments that are no object',
      use({ tools: [TIME, f({ type: ['string', 'null'] })] }),
      'tools[1].parameters',
    ],
    ['impossible arguments', use({ tools: [f(false)] }), 'tools[0].parameters'],
  ])('for %s', async (_name, tools, param) => {
    expect(await refused({ tools })).toMatchObject({ kind: 'invalid_request', param })
  })

  const long = 'n'.repeat(5_000)
  const RULE = 'must be 1 to 128 characters of A-Z, a-z, 0-9, "_", "-", ".", ":" and "/", not'
  test.each([
    [use({ tools: [{ ...TIME, name: 'é' }] }), `\`tools[0].name\` ${RULE} "é".`],
    [
      use({ tools: [TIME, { ...TIME, name: long }] }),
      `\`tools[1].name\` ${RULE} "${long.slice(0, 100)}...".`,
    ],
    [
      use({ tools: [TIME, TIME] }),
      `\`tools[1].name\` is "${TIME.name}", which is the name of an earlier tool.`,
    ],
    [
      use({ tools: [f({ type: 'string' })] }),
      '`tools[0].parameters` of the tool "f" must be the schema of an object.',
    ],
    [
      use({ tools: [TIME, WEATHER], only: [long] }),
      `tool_choice names "${long.slice(0, 100)}...", which is not one of the tools. ` +
        `Name one of them: ${TIME.name}, ${WEATHER.name}.`,
    ],
  ])('with the tool and the rule: %#', async (tools, message) => {
    const error = (await refused({ tools })) as Error
    expect(error.message.startsWith(message), error.message).toBe(true)
  })

  test.each<[Partial<GenerationRequest>, string, string]>([
    [{ tools: use() }, '', 'tools'],
    [{ format: { type: 'grammar', grammar: 'oops' } }, '', 'format'],
    [{ tools: use() }, 'tools[0].parameters.a', 'tools[0].parameters.a'],
  ])('for what the engine refuses, by its place: %j %s', async (fields, place, param) => {
    const refuse = (): Error => new InoriginError('invalid_request', 'No.', { param: place })
    expect(await refused(fields, refuse)).toMatchObject({ message: 'No.', param })
  })

  test('for an unknown tool format of the catalog', async () => {
    const planned = planGeneration(scripted([]), request(), { toolFormat: 'hermès' })
    await expect(planned).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

describe('A prefilled answer', () => {
  const SWITCH = '{% if enable_thinking %}<think></think>'
  const LLAMA = '<|start_header_id|>{% if tools %}{"name": x, "parameters": y}'
  const { messages } = request()
  const responsePrefix = { text: 'So' }
  const tools = use({ tools: [TIME] })
  const prefilled = (fields: Partial<GenerationRequest>, script?: Script) =>
    plan({ responsePrefix: 'So', ...fields }, script)
  const answer = async (pieces: string[], fields: Partial<GenerationRequest>, template = '') =>
    sum(await collect(scripted(pieces, { template }), fields))

  test('is the end of the prompt', async () => {
    const { engine, constraint, forcedCharacters } = await prefilled({})
    expect(engine.conversations).toEqual([{ messages, responsePrefix }])
    expect([constraint, forcedCharacters]).toEqual([null, 0])
    const empty = await prefilled({ responsePrefix: '' })
    expect(empty.engine.conversations).toEqual([{ messages }])
  })

  test.each([undefined, 0, 100])(
    'has no reasoning, with a budget of %s',
    async (reasoningBudget) => {
      const script = { template: SWITCH, opening: 'A:<think>\n\n</think>\n\n' }
      const { engine, reasoning, constraint } = await prefilled({ reasoningBudget }, script)
      expect(engine.conversations).toEqual([{ messages, responsePrefix }])
      expect([reasoning, constraint]).toEqual([null, null])
    },
  )

  test('closes the reasoning that a template opens', async () => {
    const script = { template: '<think></think>', opening: 'A:<think>\n' }
    const { engine } = await prefilled({}, script)
    const block = '\n</think>\n\n'
    expect(engine.conversations.at(-1)?.responsePrefix).toEqual({ block, text: 'So' })
  })

  test('is followed by text without reasoning', async () => {
    const answered = await answer([' <think>', 'x'], { responsePrefix: 'Say' }, SWITCH)
    expect(answered).toMatchObject({ text: ' <think>x', reasoning: '' })
  })

  test('has no part in stop sequences', async () => {
    const fields = { responsePrefix: 'ST', stop: ['STop', 'STOP'] }
    const answered = await answer(['op', ' now', ' ST', 'OP', ' x'], fields)
    expect(answered).toMatchObject({ text: 'op now ', reason: 'stop_sequence' })
  })

  test('may be followed by calls, unless they are a whole answer', async () => {
    const call = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
    const fields = { responsePrefix: 'Well,', tools }
    expect(await answer([' I look.\n', call], fields, NATIVE)).toMatchObject({
      text: ' I look.',
      calls: [{ name: 'get_time' }],
    })
    const planned = await prefilled({ tools }, { template: LLAMA })
    expect(planned).toMatchObject({ tools: null, constraint: null })
    const text = '{"name": "get_time", "parameters": {}}'
    expect(await answer([text], fields, LLAMA)).toMatchObject({ text, calls: [] })
  })

  test.each<[string, Partial<GenerationRequest>]>([
    ['tool_choice', { tools: use({ tools: [TIME], choice: 'required' }) }],
    ['tool_choice', { tools: use({ tools: [TIME], choice: 'required', only: ['get_time'] }) }],
  ])('cannot be combined with %s: %j', async (param, fields) => {
    await expect(prefilled(fields)).rejects.toMatchObject({
      kind: 'invalid_request',
      param,
      message: `${param} cannot be combined with a prefilled assistant message. Remove one of them.`,
    })
    await expect(prefilled({ ...fields, responsePrefix: undefined })).resolves.toBeDefined()
  })

  test('has the format of the answer as a whole', async () => {
    const schema = { type: 'array' }
    const { constraint } = await prefilled({ format: { type: 'json_schema', schema } })
    const whole = { type: 'json', schema, path: 'format.schema' }
    expect(constraint).toEqual({ type: 'rest', text: 'So', whole })
  })
})

test('What a constraint does not keep is told', async () => {
  const fields = { format: { type: 'json_schema', schema: { 'x-a': 1 } } } as const
  expect((await plan(fields, { loosened: ['x-a'] })).loosened).toEqual(['x-a'])
})
