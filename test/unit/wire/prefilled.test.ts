/** Answers that continue a last message of the assistant. */
import { describe, expect, it } from 'vitest'
import { asks, SAME, testFields } from './field-table.ts'
import type { Row } from './field-table.ts'
import { chatOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { adaptive, enabled, texts } from './shared-fields.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

const user = { role: 'user', content: 'Which?' }
const assistant = (content: unknown, rest: object = {}) => ({ role: 'assistant', content, ...rest })
const history = { messages: [user, assistant('A')] }
const CHAT_BASE = chatOf({
  ...history,
  continue_final_message: true,
  add_generation_prompt: false,
})
const MESSAGE_BASE = messageOf({ ...history, max_tokens: 9999 })

/** The prompt is what comes before the text that the answer continues. */
const continues = (responsePrefix: string, rest: object = {}) =>
  asks({ messages: [user], responsePrefix, ...rest })
const pastTurn = asks({ messages: [user, assistant('A')] })
const NO_THINKING = 'disabled or left out with a prefilled assistant message, not'
const WHITESPACE =
  'without whitespace at its end (final assistant content cannot end with trailing whitespace), not'
const NO_ASSISTANT = 'false or left out unless the last message has role assistant'
const LEFT_OUT = 'left out when continue_final_message is true, not'
const use = { type: 'tool_use', id: 'call_a', name: 'f', input: {} }
const call = { id: 'a', function: { name: 'f', arguments: '{}' } }

const SHARED: Row[] = [
  ['messages[1].content', 'The best one is', continues('The best one is')],
  ['messages[1].content', texts('The best', ' one is'), continues('The best one is')],
  ['thinking', { type: 'disabled' }, continues('A', { reasoningBudget: 0 })],
  // An effort has no effect, since reasoning comes before the text.
  ['output_config', { effort: 'low' }, continues('A', { reasoningBudget: 256 })],
  ['thinking', enabled(5), `${NO_THINKING} "enabled"`, 'thinking.type'],
  ['thinking', adaptive, `${NO_THINKING} "adaptive"`, 'thinking.type'],
  [
    'messages',
    [assistant('A')],
    'an array with a message before the prefilled assistant message, not an array of 1',
  ],
]

const CHAT_ROWS: Row[] = [
  ...SHARED,
  ['messages[1].content', 'A\n', continues('A\n')],
  ['messages[1]', assistant(null, { refusal: 'No' }), continues('No')],
  ['messages[1]', assistant('A', { tool_calls: [], reasoning: '' }), SAME],
  ['messages[1]', user, `${NO_ASSISTANT}, not true`, 'continue_final_message'],
  ['messages[1].tool_calls', [call], `${LEFT_OUT} an array of 1`],
  ['messages[1].function_call', call.function, `${LEFT_OUT} an object`],
  ['messages[1].reasoning_content', 'Hm.', `${LEFT_OUT} "Hm."`],
  ['add_generation_prompt', undefined, SAME],
  ['add_generation_prompt', true, `false or ${LEFT_OUT} true`],
  [
    'continue_final_message',
    undefined,
    'true or left out unless continue_final_message is true, not false',
    'add_generation_prompt',
  ],
  ['', { continue_final_message: undefined, add_generation_prompt: undefined }, pastTurn],
  ['', { continue_final_message: false, add_generation_prompt: true }, pastTurn],
]

const MESSAGE_ROWS: Row[] = [
  ...SHARED,
  ['messages[1].content', '', continues('')],
  ['messages[1].content', [], continues('')],
  ['messages[1].content', 'A ', `${WHITESPACE} "A "`],
  ['messages[1].content', texts('A', '\t'), `${WHITESPACE} "A\\t"`],
  ...[
    [...texts('A'), use],
    [use, ...texts('A')],
    [{ type: 'thinking', thinking: 'Hm.', signature: '' }, ...texts('A')],
    [{ type: 'redacted_thinking', data: 'x' }],
  ].map((content): Row => {
    const at = content.findIndex(({ type }) => type !== 'text')
    const verdict = `text in a prefilled assistant message, not "${content[at]?.type}"`
    return ['messages[1].content', content, verdict, `messages[1].content[${at}].type`]
  }),
]

const COUNT_ROWS: Row[] = [
  ['messages[1].content', 'B', continues('B')],
  // No answer can continue a call, so it is a past turn.
  [
    'messages[1].content',
    [use],
    asks({
      messages: [
        user,
        assistant('', { toolCalls: [{ id: 'call_a', name: 'f', arguments: '{}' }] }),
      ],
    }),
  ],
]

describe('a prefilled message', () => {
  testFields(CHAT, CHAT_BASE, CHAT_ROWS)
  testFields(MESSAGES, MESSAGE_BASE, MESSAGE_ROWS)
  testFields(`${MESSAGES}/count_tokens`, MESSAGE_BASE, COUNT_ROWS)

  it('is not repeated in the answer', async () => {
    const message = await (await send(scriptedHost(), MESSAGES, { body: MESSAGE_BASE })).json()
    expect(message.content).toEqual(texts('Hello there'))
    const completion = await (await send(scriptedHost(), CHAT, { body: CHAT_BASE })).json()
    expect(completion.choices[0].message.content).toBe('Hello there')
  })
})
