/** Answers that go on where a last message of the assistant ends. */
import { describe, expect, it } from 'vitest'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

const user = { role: 'user', content: 'Which?' }
const assistant = (content: unknown, rest: object = {}) => ({ role: 'assistant', content, ...rest })
const goOn = { continue_final_message: true, add_generation_prompt: false }

const messages = (last: object, rest: object = {}) => messageOf({ messages: [user, last], ...rest })
const chat = (last: object, rest: object = {}) =>
  chatOf({ messages: [user, last], ...goOn, ...rest })
const refusalOf = async (path: string, body: object) => {
  const { param, message } = await errorOf(await send(scriptedHost(), path, { body }), 400)
  return { param, message }
}

describe('an answer', () => {
  it.each([
    [MESSAGES, messages(assistant('The best one is'))],
    [
      MESSAGES,
      messages(
        assistant([
          { type: 'text', text: 'The best' },
          { type: 'text', text: ' one is' },
        ]),
      ),
    ],
    [MESSAGES, messages(assistant('The best one is'), { thinking: { type: 'disabled' } })],
    [CHAT, chat(assistant('The best one is'))],
    [
      CHAT,
      chat(
        assistant([{ type: 'text', text: 'The best one is' }], { tool_calls: [], reasoning: '' }),
      ),
    ],
    [CHAT, chat(assistant(null, { refusal: 'The best one is' }))],
    [CHAT, chat(assistant('The best one is'), { add_generation_prompt: undefined })],
  ])('begins with what the last message of %s says: %j', async (path, body) => {
    const { request } = await askedOf(path, body)
    expect([request.messages, request.responsePrefix]).toEqual([[user], 'The best one is'])
  })

  it('has only what follows', async () => {
    const message = await (
      await send(scriptedHost(), MESSAGES, { body: messages(assistant('Why,')) })
    ).json()
    expect(message.content).toEqual([{ type: 'text', text: 'Hello there' }])
    const completion = await (
      await send(scriptedHost(), CHAT, { body: chat(assistant('Why,')) })
    ).json()
    expect(completion.choices[0].message.content).toBe('Hello there')
  })

  it('of nothing is one that has not begun', async () => {
    for (const content of ['', []]) {
      const { request } = await askedOf(MESSAGES, messages(assistant(content)))
      expect([request.messages, request.responsePrefix]).toEqual([[user], ''])
    }
  })

  it('follows a past turn of the assistant in a chat that does not say that it goes on', async () => {
    for (const fields of [{}, { continue_final_message: false, add_generation_prompt: true }]) {
      const { request } = await askedOf(
        CHAT,
        chatOf({ messages: [user, assistant('So?')], ...fields }),
      )
      expect([request.messages, request.responsePrefix]).toEqual([
        [user, assistant('So?')],
        undefined,
      ])
    }
  })

  it('may be asked for with an effort of thought, which it has no place for', async () => {
    const { request } = await askedOf(CHAT, chat(assistant('A'), { reasoning_effort: 'high' }))
    expect([request.responsePrefix, request.reasoningBudget]).toEqual(['A', 4096])
    expect(
      (await askedOf(MESSAGES, messages(assistant('A'), { output_config: { effort: 'low' } })))
        .request.responsePrefix,
    ).toBe('A')
  })
})

describe('the beginning of an answer', () => {
  it.each([
    'A ',
    'A\n',
    ' ',
    [
      { type: 'text', text: 'A' },
      { type: 'text', text: '\t' },
    ],
  ])('with white space at its end is refused, as others of that style do: %j', async (content) => {
    const { param, message } = await refusalOf(MESSAGES, messages(assistant(content)))
    expect(param).toBe('messages[1].content')
    expect(message).toContain('final assistant content cannot end with trailing whitespace')
  })

  it('may end with white space in a chat', async () => {
    expect((await askedOf(CHAT, chat(assistant('A\n')))).request.responsePrefix).toBe('A\n')
  })

  it.each([
    [
      'messages[1].content[1].type',
      [
        { type: 'text', text: 'A' },
        { type: 'tool_use', id: 'a', name: 'f', input: {} },
      ],
    ],
    [
      'messages[1].content[0].type',
      [
        { type: 'tool_use', id: 'a', name: 'f', input: {} },
        { type: 'text', text: 'A' },
      ],
    ],
    [
      'messages[1].content[0].type',
      [
        { type: 'thinking', thinking: 'Hm.', signature: '' },
        { type: 'text', text: 'A' },
      ],
    ],
    ['messages[1].content[0].type', [{ type: 'redacted_thinking', data: 'x' }]],
  ])('is text: %s of a message is refused', async (param, content) => {
    expect((await refusalOf(MESSAGES, messages(assistant(content)))).param).toBe(param)
  })

  it.each([
    [
      'add_generation_prompt',
      chat(assistant('A'), { add_generation_prompt: true }),
      '`add_generation_prompt` must be false or left out when continue_final_message is true, not true.',
    ],
    [
      'add_generation_prompt',
      chat(assistant('A'), { continue_final_message: undefined }),
      '`add_generation_prompt` must be true or left out unless continue_final_message is true, not false.',
    ],
    [
      'continue_final_message',
      chat(user),
      '`continue_final_message` must be false or left out unless the last message has role assistant, not true.',
    ],
    [
      'messages[1].tool_calls',
      chat(assistant('A', { tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] })),
      '`messages[1].tool_calls` must be left out when continue_final_message is true, not an array of 1.',
    ],
    [
      'messages[1].function_call',
      chat(assistant('A', { function_call: { name: 'f', arguments: '{}' } })),
      '`messages[1].function_call` must be left out when continue_final_message is true, not an object.',
    ],
    [
      'messages[1].reasoning_content',
      chat(assistant('A', { reasoning_content: 'Hm.' })),
      '`messages[1].reasoning_content` must be left out when continue_final_message is true, not "Hm.".',
    ],
  ])('in a chat is refused for %s', async (param, body, message) => {
    expect(await refusalOf(CHAT, body)).toEqual({ param, message })
  })

  it.each([
    [MESSAGES, messages],
    [CHAT, chat],
  ])('of %s stands behind another message and before no thought', async (path, make) => {
    const alone = { ...make(assistant('A')), messages: [assistant('A')] }
    expect((await refusalOf(path, alone)).param).toBe('messages')
    for (const thinking of [{ type: 'enabled', budget_tokens: 5 }, { type: 'adaptive' }]) {
      expect(await refusalOf(path, make(assistant('A'), { thinking }))).toEqual({
        param: 'thinking.type',
        message: `\`thinking.type\` must be disabled or left out with a prefilled assistant message, not "${thinking.type}".`,
      })
    }
  })
})

describe('what is counted', () => {
  const countedOf = async (last: object) => {
    const host = scriptedHost()
    const response = await send(host, `${MESSAGES}/count_tokens`, { body: messages(last) })
    expect(response.status).toBe(200)
    return host.requests[0]
  }

  it('has the beginning of the answer as it would be answered', async () => {
    expect(await countedOf(assistant('A'))).toMatchObject({ messages: [user], responsePrefix: 'A' })
  })

  it('has a past turn in what no answer could go on from', async () => {
    const content = [{ type: 'tool_use', id: 'call_a', name: 'f', input: {} }]
    const request = await countedOf(assistant(content))
    expect(request?.responsePrefix).toBeUndefined()
    expect(request?.messages[1]).toEqual({
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'call_a', name: 'f', arguments: '{}' }],
    })
  })
})
