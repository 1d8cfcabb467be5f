import { expect, test, vi } from 'vitest'
import { parseTemplate } from '../../../src/engine/onnx/text/template.ts'
import type { ChatMessage } from '../../../src/types/index.ts'

const system: ChatMessage = { role: 'system', content: 'Be kind.' }
const user: ChatMessage = { role: 'user', content: 'Hi' }
const assistant: ChatMessage = { role: 'assistant', content: 'Yes?' }

const TURNS = '{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}'

/** As Gemma's: no system role, and turns alternate. */
const STRICT =
  "{% if messages[0].role == 'system' %}" +
  "{{ raise_exception('System role not supported') }}{% endif %}" +
  "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" +
  "{{ raise_exception('Conversation roles must alternate') }}{% endif %}" +
  '[{{ m.role }}: {{ m.content }}]{% endfor %}'

test('renders the conversation, the names of tokens, and where the answer begins', () => {
  const source = `{{ bos_token }}${TURNS}{% if add_generation_prompt %}[assistant: {% endif %}`
  expect(parseTemplate(source, { bos_token: '<s>' }).render([system, user])).toBe(
    '<s>[system: Be kind.][user: Hi][assistant: ',
  )
})

test('asks for no reasoning', () => {
  const source = '{% if enable_thinking is defined and enable_thinking is false %}quiet{% endif %}'
  expect(parseTemplate(source, {}).render([user])).toBe('quiet')
})

test('puts the system text into the first user turn where the template refuses it', () => {
  const { render } = parseTemplate(STRICT, {})
  expect(render([system, user])).toBe('[user: Be kind.\n\nHi]')
  expect(render([system, user, assistant, user])).toBe(
    '[user: Be kind.\n\nHi][assistant: Yes?][user: Hi]',
  )
})

test('puts the system text into the first user turn where the template leaves it out', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content }}]{% endif %}{% endfor %}"
  expect(parseTemplate(source, {}).render([system, user])).toBe('[Be kind.\n\nHi]')
})

test.each(['Hi', 'hello', ' Hi ', 'user'])(
  'sees that the template leaves out a system text that is said elsewhere too: %j',
  (content) => {
    const source =
      "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}: {{ m.content }}]" +
      '{% endif %}{% endfor %}'
    const messages = [{ role: 'system', content } as const, { ...user, content: 'Hi hello' }]
    expect(parseTemplate(source, {}).render(messages)).toBe(`[user: ${content}\n\nHi hello]`)
  },
)

test('sees that the template leaves out a later system text', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'system' or loop.first %}[{{ m.content }}]" +
    '{% endif %}{% endfor %}'
  const again: ChatMessage = { role: 'system', content: 'kind' }
  const { render } = parseTemplate(source, {})
  expect(render([system, user, again, user])).toBe('[Be kind.\n\nHi\n\nkind\n\nHi]')
  expect(render([system, user])).toBe('[Be kind.][Hi]')
})

test('leaves the system text to a template that writes it in its own way, or has none', () => {
  const source =
    '{% for m in messages %}[{{ m.role }}: {{ m.content | upper | tojson }}]{% endfor %}'
  const quoted: ChatMessage = { role: 'system', content: 'Be "kind".\n' }
  expect(parseTemplate(source, {}).render([quoted, user])).toBe(
    '[system: "BE \\"KIND\\".\\n"][user: "HI"]',
  )
  const silent: ChatMessage = { role: 'system', content: ' ' }
  expect(parseTemplate(TURNS, {}).render([silent, user])).toBe('[system:  ][user: Hi]')
})

test('makes one of turns in a row only where the template insists', () => {
  expect(parseTemplate(STRICT, {}).render([user, user, assistant, assistant, system, user])).toBe(
    '[user: Hi\n\nHi][assistant: Yes?\n\nYes?][user: Be kind.\n\nHi]',
  )
  expect(parseTemplate(TURNS, {}).render([user, user])).toBe('[user: Hi][user: Hi]')
})

test('says why when the template refuses the conversation all the same', () => {
  expect(() => parseTemplate(STRICT, {}).render([assistant, user])).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      message: expect.stringContaining('roles must alternate'),
    }),
  )
})

test('writes dates in English', () => {
  const text = parseTemplate('{{ strftime_now("%d %B %Y %H:%M %%") }}', {}).render([user])
  expect(text).toMatch(
    /^\d\d (January|February|March|April|May|June|July|August|\w+ember|October) \d{4} \d\d:\d\d %$/,
  )
})

test.each([
  ['{{ messages[', 'cannot be read'],
  ['{{ 1 + none }}', 'failed'],
  ['{% for i in range(100000000000) %}{% endfor %}', 'too long a list'],
  [
    '{% set n = namespace(x="a") %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}',
    'too much',
  ],
  ['{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}', 'failed'],
])('bounds a template that is broken or hostile: %s', (source, why) => {
  expect(() => parseTemplate(source, {}).render([user])).toThrow(
    expect.objectContaining({ kind: 'unavailable', message: expect.stringContaining(why) }),
  )
})

test('makes as much text as a conversation has, whatever it has', () => {
  const content = 'x'.repeat(9 * 1024 * 1024)
  expect(parseTemplate(TURNS, {}).render([{ role: 'user', content }])).toHaveLength(
    content.length + '[user: ]'.length,
  )
})

test('ends a template that would run for hours', () => {
  // A clock on which every step of the template takes a millisecond.
  const now = vi.spyOn(performance, 'now')
  let time = 0
  now.mockImplementation(() => (time += 1))
  const loop = (body: string): string => `{% for i in range(100000) %}${body}{% endfor %}`
  const { render } = parseTemplate(loop(loop(loop('{% set x = i %}'))), {})
  expect(() => render([user])).toThrow(
    expect.objectContaining({ message: expect.stringContaining('too long') }),
  )
  expect(time).toBeLessThan(10_000)
  now.mockRestore()
})
