/** Parallel calls in chat templates that write one call of a message. */
import { expect, test } from 'vitest'
import type { Conversation } from '../../../src/engine/engine.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'

const call = (id: string, name: string) => ({ id, name, arguments: `{"value": "${name}"}` })
const result = (toolCallId: string, name: string, content: string) =>
  ({ role: 'tool', toolCallId, name, content }) as const

const CONVERSATION: Conversation = {
  messages: [
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: 'So.', toolCalls: [call('a', 'one'), call('b', 'two')] },
    result('b', 'two', '2'),
    result('a', 'one', '1'),
    { role: 'user', content: 'Thanks.' },
  ],
}

const ROUNDS = 'user:Go.|So.one|tool:1|two|tool:2|user:Thanks.|'
const write = (calls: string, check = '') =>
  `{% for m in messages %}{% if m.tool_calls %}${check}{{ m.content or '' }}${calls}|{% else %}{{ m.role }}:{{ m.content }}|{% endif %}{% endfor %}`
const NAMES =
  '{% for c in m.tool_calls %}{{ c.function.name }}{{ "" if "one" in c.function.name or "two" in c.function.name else c.function.arguments }}{% endfor %}'
const FIRST =
  '{% set c = m.tool_calls[0].function %}{{ c.name }}{{ "" if c.name in ["one", "two"] else c.arguments }}'
const REFUSE =
  "{% if m.tool_calls | length != 1 %}{{ raise_exception('One call at once.') }}{% endif %}"

test.each([
  ['writes only the first call', write(FIRST), ROUNDS],
  ['rejects several calls', write(NAMES, REFUSE), ROUNDS],
  ['writes all calls', write(NAMES), 'user:Go.|So.onetwo|tool:2|tool:1|user:Thanks.|'],
])('A template that %s gets each call with its result', (_, template, expected) => {
  expect(parseTemplate(template, {}).render(CONVERSATION).text).toBe(expected)
})
