import { expect, test, vi } from 'vitest'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import type { ChatMessage } from '../../../src/types/index.ts'

const system: ChatMessage = { role: 'system', content: 'Be kind.' }
const user: ChatMessage = { role: 'user', content: 'Hi' }
const assistant: ChatMessage = { role: 'assistant', content: 'Yes?' }

/** The text of messages. */
const draw =
  (source: string, tokens: Record<string, string> = {}) =>
  (messages: ChatMessage[]): string =>
    parseTemplate(source, tokens).render({ messages }).text

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
  expect(draw(source, { bos_token: '<s>' })([system, user])).toBe(
    '<s>[system: Be kind.][user: Hi][assistant: ',
  )
})

test('tells the template whether to reason only where that is asked for', () => {
  for (const name of ['enable_thinking', 'thinking']) {
    const source = `{{ "as ever" if ${name} is not defined else ${name} }}`
    const { render } = parseTemplate(source, {})
    expect(render({ messages: [user] }).text).toBe('as ever')
    expect(render({ messages: [user], thinking: true }).text).toBe('true')
    expect(render({ messages: [user], thinking: false }).text).toBe('false')
  }
})

test('puts the system text into the first user turn where the template refuses it', () => {
  const render = draw(STRICT, {})
  expect(render([system, user])).toBe('[user: Be kind.\n\nHi]')
  expect(render([system, user, assistant, user])).toBe(
    '[user: Be kind.\n\nHi][assistant: Yes?][user: Hi]',
  )
})

test('puts the system text into the first user turn where the template leaves it out', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content }}]{% endif %}{% endfor %}"
  expect(draw(source, {})([system, user])).toBe('[Be kind.\n\nHi]')
})

test.each(['Hi', 'hello', ' Hi ', 'user'])(
  'sees that the template leaves out a system text that is said elsewhere too: %j',
  (content) => {
    const source =
      "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}: {{ m.content }}]" +
      '{% endif %}{% endfor %}'
    const messages = [{ role: 'system', content } as const, { ...user, content: 'Hi hello' }]
    expect(draw(source, {})(messages)).toBe(`[user: ${content}\n\nHi hello]`)
  },
)

test('sees that the template leaves out a later system text', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'system' or loop.first %}[{{ m.content }}]" +
    '{% endif %}{% endfor %}'
  const again: ChatMessage = { role: 'system', content: 'kind' }
  const render = draw(source, {})
  expect(render([system, user, again, user])).toBe('[Be kind.\n\nHi\n\nkind\n\nHi]')
  expect(render([system, user])).toBe('[Be kind.][Hi]')
})

test('leaves the system text to a template that writes it in its own way, or has none', () => {
  const source =
    '{% for m in messages %}[{{ m.role }}: {{ m.content | upper | tojson }}]{% endfor %}'
  const quoted: ChatMessage = { role: 'system', content: 'Be "kind".\n' }
  expect(draw(source, {})([quoted, user])).toBe('[system: "BE \\"KIND\\".\\n"][user: "HI"]')
  const silent: ChatMessage = { role: 'system', content: ' ' }
  expect(draw(TURNS, {})([silent, user])).toBe('[system:  ][user: Hi]')
})

test('makes one of turns in a row only where the template insists', () => {
  expect(draw(STRICT, {})([user, user, assistant, assistant, system, user])).toBe(
    '[user: Hi\n\nHi][assistant: Yes?\n\nYes?][user: Be kind.\n\nHi]',
  )
  expect(draw(TURNS, {})([user, user])).toBe('[user: Hi][user: Hi]')
})

test('says why when the template refuses the conversation all the same', () => {
  expect(() => draw(STRICT, {})([assistant, user])).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      message: expect.stringContaining('roles must alternate'),
    }),
  )
})

test('writes dates in English', () => {
  const text = draw('{{ strftime_now("%d %B %Y %H:%M %%") }}')([user])
  expect(text).toMatch(
    /^\d\d (January|February|March|April|May|June|July|August|\w+ember|October) \d{4} \d\d:\d\d %$/,
  )
})

test.each<[string, string]>([
  ['{{ messages[', 'cannot be read'],
  ['{{ 1 + none }}', 'failed'],
  ['{% for i in range(100000000000) %}{% endfor %}', 'too long a list'],
  [
    '{% set n = namespace(x="a") %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}',
    'too much',
  ],
  ...[
    '{{ n.x | tojson }}',
    '{{ n.x }}',
    '{% set y = n.x ~ "" %}',
    '{{ n.x | string }}',
    '{{ n.x | join }}',
  ].map((use): [string, string] => [
    `{% set n = namespace(x=["a"]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}${use}`,
    'too much text',
  ]),
  ['{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}', 'failed'],
])('bounds a template that is broken or hostile: %s', (source, why) => {
  expect(() => draw(source, {})([user])).toThrow(
    expect.objectContaining({ kind: 'unavailable', message: expect.stringContaining(why) }),
  )
})

test('makes as much text as a conversation has, whatever it has', () => {
  const content = 'x'.repeat(9 * 1024 * 1024)
  expect(draw(TURNS, {})([{ role: 'user', content }])).toHaveLength(
    content.length + '[user: ]'.length,
  )
})

test('ends a template that would run for hours', () => {
  // A clock on which every step of the template takes a millisecond.
  const now = vi.spyOn(performance, 'now')
  let time = 0
  now.mockImplementation(() => (time += 1))
  const loop = (body: string): string => `{% for i in range(100000) %}${body}{% endfor %}`
  const render = draw(loop(loop(loop('{% set x = i %}'))), {})
  expect(() => render([user])).toThrow(
    expect.objectContaining({ message: expect.stringContaining('too long') }),
  )
  expect(time).toBeLessThan(10_000)
  now.mockRestore()
})
