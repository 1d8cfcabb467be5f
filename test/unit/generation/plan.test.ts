import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { ChatMessage, GenerationRequest } from '../../../src/types/index.ts'
import { request, scripted, TIME, use, WEATHER } from './scripted.ts'

const NATIVE = "{% if tools %}<tool_call>{'arguments': {% endif %}{{ message.tool_calls }}"

/** The messages that the engine was given. */
async function messagesOf(
  fields: Partial<GenerationRequest>,
  template: string | null = '',
): Promise<readonly ChatMessage[]> {
  const engine = scripted([], { template })
  await planGeneration(engine, request(fields))
  return engine.conversations[0]?.messages ?? []
}

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

describe('tools', () => {
  const tools = use({ tools: [WEATHER, TIME] })

  test('are left to a chat template that writes them', async () => {
    const engine = scripted([], { template: NATIVE })
    await planGeneration(engine, request({ messages: LOOP, tools }))
    expect(engine.conversations).toEqual([
      {
        messages: LOOP.with(3, { ...LOOP[3], content: 'Error: no clock' } as ChatMessage),
        tools: [WEATHER, TIME],
      },
    ])
  })

  test.each<[string | null, string]>([
    ['', 'another template'],
    ['{% if tools %}<|call|>', 'a template with a format of its own'],
    ["<tool_call>{'arguments':", 'a template that only mentions them'],
    [null, 'no template'],
  ])('are told in the system text with %j, %s', async (template) => {
    const engine = scripted([], { template })
    await planGeneration(engine, request({ tools: use({ tools: [TIME] }) }))
    expect(engine.conversations).toEqual([
      {
        messages: [
          {
            role: 'system',
            content: [
              '# Tools',
              'You may call these functions:',
              '{"name":"get_time","parameters":{"type":"object","properties":{}}}',
              'To call one, answer with:',
              '<tool_call>',
              '{"name": "the_name", "arguments": {"argument": "value"}}',
              '</tool_call>',
            ].join('\n'),
          },
          { role: 'user', content: 'Hi' },
        ],
      },
    ])
  })

  test('are told behind what the system text says', async () => {
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

  test('their calls and what they gave are told as text without a template', async () => {
    expect(await messagesOf({ messages: LOOP }, null)).toEqual([
      LOOP[0],
      { role: 'assistant', content: `I look.\n${calls}` },
      results,
      LOOP[4],
    ])
  })

  test.each([
    ['', [...LOOP.slice(0, 2), results, LOOP[4]], calls],
    [
      '{% if tools %}List of tools: ',
      LOOP.with(3, { ...LOOP[3], content: 'Error: no clock' } as ChatMessage),
      '<|tool_call_start|>[get_weather(city="Rome"), get_time()]<|tool_call_end|>',
    ],
  ])(
    'their calls are written by the engine where the template leaves them out: %j',
    async (template, messages, written) => {
      const engine = scripted([], { template })
      await planGeneration(engine, request({ messages: LOOP }))
      const [conversation] = engine.conversations
      expect(conversation?.messages).toEqual(messages)
      const [, asked] = LOOP
      if (asked?.role !== 'assistant' || !asked.toolCalls) throw new Error('no calls')
      expect(conversation?.serializeCalls?.(asked.toolCalls)).toBe(written)
    },
  )

  test('that may not be called are not told', async () => {
    const engine = scripted([], { template: NATIVE })
    const { tools: planned, constraint } = await planGeneration(
      engine,
      request({ tools: use({ choice: 'none' }) }),
    )
    expect(engine.conversations).toEqual([{ messages: request().messages }])
    expect([planned, constraint]).toEqual([null, null])
    expect(await messagesOf({ tools: use({ choice: 'none' }) })).toEqual(request().messages)
  })

  test('of an empty list are none', async () => {
    const planned = await planGeneration(
      scripted([], { template: NATIVE }),
      request({ tools: use({ tools: [] }) }),
    )
    expect(planned).toMatchObject({ tools: null, visible: [], constraint: null })
  })

  test('are checked as they will constrain the answer, reasoning included', async () => {
    const engine = scripted([], { template: `${NATIVE}<think></think>` })
    const { constraint } = await planGeneration(engine, request({ tools: use() }))
    expect(constraint).toMatchObject({ type: 'choice' })
    expect(engine.checked).toEqual([constraint])
  })

  test('are all told where only some may be called', async () => {
    const engine = scripted([], { template: NATIVE })
    const planned = await planGeneration(engine, request({ tools: use({ only: ['get_time'] }) }))
    expect(engine.conversations[0]?.tools).toHaveLength(3)
    expect(planned.tools?.callable).toEqual([TIME])
  })
})

describe('the format of an answer', () => {
  const ask = (content: string): Partial<GenerationRequest> => ({
    messages: [{ role: 'user', content }],
  })

  test('is told where it is JSON', async () => {
    const schema = { type: 'array', items: { type: 'integer' } }
    const [told] = await messagesOf({ ...ask('Count.'), format: { type: 'json_schema', schema } })
    expect(told).toEqual({
      role: 'system',
      content: `Answer in JSON, by this schema: ${JSON.stringify(schema)}`,
    })
    const [object] = await messagesOf({ ...ask('Count.'), format: { type: 'json_object' } })
    expect(object?.content).toBe('Answer with a JSON object.')
  })

  test('is not told twice, nor at any length, nor as a grammar', async () => {
    const json = ask('Give me JSON.')
    expect(await messagesOf({ ...json, format: { type: 'json_object' } })).toEqual(json.messages)
    const schema = { enum: Array.from({ length: 500 }, (_, index) => `value ${index}`) }
    const [told] = await messagesOf({ ...json, format: { type: 'json_schema', schema } })
    expect(told?.content).toBe('Answer in JSON.')
    const grammar = { type: 'grammar', grammar: 'root ::= "a"' } as const
    expect(await messagesOf({ ...json, format: grammar })).toEqual(json.messages)
  })
})

describe('what cannot be is refused', () => {
  const refused = async (
    fields: Partial<GenerationRequest>,
    refuse?: () => Error,
  ): Promise<unknown> => {
    const engine = scripted([], { template: NATIVE, ...(refuse && { refuse }) })
    return planGeneration(engine, request(fields)).then(
      () => null,
      (error: unknown) => error,
    )
  }

  test.each([
    ['a tool that is not there', use({ only: ['delete'] }), 'tool_choice'],
    ['a call without tools', use({ tools: [], choice: 'required' }), 'tool_choice'],
    ['a call of none of the tools', use({ only: [], choice: 'required' }), 'tool_choice'],
    ['a name of two tools', use({ tools: [TIME, WEATHER, TIME] }), 'tools[2].name'],
    ['a name that is none', use({ tools: [TIME, { ...TIME, name: 'a b' }] }), 'tools[1].name'],
    [
      'arguments that are no object',
      use({ tools: [TIME, { name: 'f', parameters: { type: ['string', 'null'] } }] }),
      'tools[1].parameters',
    ],
    [
      'arguments that cannot be',
      use({ tools: [{ name: 'f', parameters: false }] }),
      'tools[0].parameters',
    ],
  ])('%s', async (_name, tools, param) => {
    expect(await refused({ tools })).toMatchObject({ kind: 'invalid_request', param })
  })

  test('arguments in past calls that are no object, where they have to be written', async () => {
    const messages = LOOP.with(1, {
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'a', name: 'get_time', arguments: '{"a' }],
    })
    await expect(messagesOf({ messages }, null)).rejects.toMatchObject({
      kind: 'invalid_request',
      param: 'messages',
    })
  })

  test('what the engine refuses, schemas by their place', async () => {
    const refuse = (): Error => new InoriginError('invalid_request', 'No.', { param: '' })
    const strange = {
      name: 'strange',
      parameters: { type: 'object', properties: { a: { contains: {} } } },
    }
    expect(await refused({ tools: use({ tools: [TIME, strange] }) }, refuse)).toMatchObject({
      kind: 'invalid_request',
      param: expect.stringMatching(/^tools\[1\]\.parameters\.properties\.a/),
    })
    expect(
      await refused({ format: { type: 'json_schema', schema: { contains: {} } } }, refuse),
    ).toMatchObject({ param: expect.stringMatching(/^format\.schema/) })
    // Where no schema is at fault, something else is.
    for (const [fields, param] of [
      [{ tools: use() }, 'tools'],
      [{ format: { type: 'grammar', grammar: 'oops' } }, 'format'],
    ] as const) {
      expect(await refused(fields, refuse)).toMatchObject({ message: 'No.', param })
    }
  })

  test('a tool format that the catalog misspells', async () => {
    const planned = planGeneration(scripted([]), request(), { toolFormat: 'hermès' })
    await expect(planned).rejects.toMatchObject({ kind: 'unavailable' })
  })
})
