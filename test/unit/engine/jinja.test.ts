/** The Jinja interpreter, compared with what Python's jinja2 rendered. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse, render, TemplateError, toValue } from '../../../src/engine/jinja/index.ts'
import { Budget } from '../../../src/engine/jinja/errors.ts'
import { formatDate } from '../../../src/engine/jinja/globals.ts'

/** Variables of the templates, which `record.py` has too. */
const VARIABLES = {
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'a', index: 0 }] },
  ],
  tools: null,
  price: 2.5,
  keys: { items: [1, 2], b: { c: null }, é: true },
}

const write = (source: string, variables: object = VARIABLES): string =>
  render(
    parse(source),
    Object.entries(variables).map(([name, value]) => [name, toValue(value)] as const),
    { characters: 100, messages: 3 },
  )

/** Texts of templates, or `["error", type]`. `test/chat-templates/record.py` writes the file. */
const RECORDED = JSON.parse(
  readFileSync(join(import.meta.dirname, 'jinja-expressions.json'), 'utf8'),
) as Readonly<Record<string, string | [string, string]>>

const all = Object.entries(RECORDED)

test.each(all.filter(([, result]) => typeof result === 'string'))(
  'renders what Python renders: %j',
  (source, text) => {
    expect(write(source)).toBe(text)
  },
)

test.each(all.filter(([, result]) => typeof result !== 'string'))(
  'fails where Python fails: %j',
  (source) => {
    expect(() => write(source)).toThrow(TemplateError)
  },
)

test.each([
  ['a\nb {{ missing.x }}', 'UndefinedError', "'missing' is undefined", 2],
  ['{{ [1,\n2] + none }}', 'TypeError', 'can only concatenate list (not "NoneType") to list', 2],
  ["{% for x in [1] %}\n\n{{ 'a' < x }}{% endfor %}", 'TypeError', "'<' not supported", 3],
  ['{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n{{ m() }}', 'ZeroDivisionError', 'division', 2],
  ['\n\n{{ 1 | nope }}', 'TemplateRuntimeError', "No filter named 'nope' found.", 3],
  ['\n{% if x %}', 'TemplateSyntaxError', 'Unexpected end of template', 2],
  ["\n\n{{ 'a", 'TemplateSyntaxError', 'unexpected char', 3],
  ["\n{{ raise_exception('no') }}", 'TemplateError', 'no', 2],
])('an error has its type, its message and its line: %j', (source, type, message, line) => {
  expect(() => write(source)).toThrow(
    expect.objectContaining({ type, line, message: expect.stringContaining(message) }),
  )
})

test('an error has the items of the loops around it', () => {
  const source = '{% for a in x %}{% for b in a %}{{ b.c.d }}{% endfor %}{% endfor %}'
  expect(() => write(source, { x: [['s'], ['t']] })).toThrow(
    expect.objectContaining({ loopItems: ['s', ['s']] }),
  )
})

test('a loop does not change its variables for good, and macros see the latest ones', () => {
  const source =
    '{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}' +
    '{% for i in [2, 3] %}{% set x = i %}{{ m() }}{{ x }}{% endfor %}{{ x }}'
  expect(write(source)).toBe('112131')
})

/** Returns the number of steps that a rendering takes. */
function countSteps(run: () => void): number {
  let steps = 0
  const original = Budget.prototype.spend
  Budget.prototype.spend = function (this: Budget, more: number): void {
    steps += more
    original.call(this, more)
  }
  try {
    run()
  } finally {
    Budget.prototype.spend = original
  }
  return steps
}

/** Returns rounds of a question, a call and its result. Calls and results differ in depth. */
const roundsOf = (count: number): object[] =>
  Array.from({ length: count }, (_, round) => [
    { role: 'user', content: `question ${round} `.repeat(50) },
    { role: 'assistant', content: null, tool_calls: [{ function: { arguments: { at: round } } }] },
    { role: 'tool', content: `result ${round}` },
  ]).flat()

test.each([
  // Each message is found by itself.
  ['{% for m in messages %}{% if m in messages %}1{% endif %}{% endfor %}', '111'],
  // No message is found, since the copies differ, as texts or as objects.
  [
    "{% set users = messages | selectattr('role', 'eq', 'user') | list %}" +
      '{% for m in messages %}{{ 1 if m not in users }}{% endfor %}',
    '11',
  ],
  [
    "{% set texts = messages | map(attribute='content') | list %}" +
      "{% for m in messages %}{{ 1 if (m.content or '') ~ '!' not in texts }}{% endfor %}",
    '111',
  ],
  // Equal copies are found.
  [
    '{% for m in messages %}{% set copy = dict(m, role=m.role) %}{{ 1 if copy in messages }}{% endfor %}',
    '111',
  ],
  [
    '{% set ids = messages | map(attribute="role") | list %}' +
      '{% for m in messages %}{{ 1 if loop.index0 in range(ids | length) }}{% endfor %}',
    '111',
  ],
])('80 rounds of calls take twice the steps of 40: %s', (source, perRound) => {
  const [one = 0, two = 0] = [40, 80].map((count) => {
    const messages = roundsOf(count)
    let text = ''
    const steps = countSteps(() => (text = write(source, { messages })))
    expect(text).toBe(perRound.repeat(count))
    return steps
  })
  expect(two / one).toBeLessThan(2.1)
})

test('members of a list are those that Python finds', () => {
  const source =
    "{% set list = [1, 'a', 2.5, none, [1, [2.0]], (1,), {'b': [true], 'a': {'c': 'x' * 99}}, true] %}" +
    "{% for x in [1.0, true, 'a', 'A', 2.5, 2, none, false, [1.0, [2]], [1, [3]], (1.0,), [1], " +
    "{'a': {'c': 'x' * 99}, 'b': [1]}, {'a': {'c': 'x' * 98 ~ 'y'}, 'b': [1]}, {}, missing] %}" +
    '{{ 1 if x in list else 0 }}{% endfor %}'
  expect(write(source)).toBe('1110101010101000')
})

test.each(['{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}'])(
  'work is limited: %s',
  (source) => {
    expect(() => write(source)).toThrow('it runs for too long')
  },
)

test.each([
  ["{{ '%*d' % (10**9, 1) }}", 'Too many decimal digits'],
  ["{{ 'a' | indent(10**10) }}", 'too much text'],
  ['{{ [1] | tojson(indent=10**10) }}', 'too much text'],
  ['{{ [1] | batch(10**9, 0) | list }}', 'too long a list'],
  ["{{ 'a' * 10**9 }}", 'too much text'],
  ['{{ [1] * 10**9 }}', 'too long a list'],
  ['{{ range(10**9) }}', 'Range too big'],
  ['{{ 10**5000 }}', 'too large'],
  ['{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}', 'recursion'],
  ['{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}', 'recursion'],
  [`{{ ${'9'.repeat(5000)} }}`, 'too many digits'],
  [`{{ ${'['.repeat(300)}${']'.repeat(300)} }}`, 'nested too deeply'],
  [`{% set ${'('.repeat(300)}a${')'.repeat(300)} = 1 %}`, 'nested too deeply'],
  [`{{ 1${' + 1'.repeat(50_000)} }}`, 'recursion'],
  [
    '{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}' +
      '{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}',
    'unhashable',
  ],
  [
    '{% set ns = namespace(x=[1]) %}{% for i in range(60) %}' +
      '{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}',
    'too much text',
  ],
])('no template takes memory or time without limits: %.60s', (source, message) => {
  expect(() => write(source)).toThrow(message)
})

test('tags are removed in linear time', () => {
  expect(write("{{ ('<' * 200000) | striptags | length }}")).toBe('200000')
  expect(write("{{ 'a<!-- > -->b <i>c</i> <!--d' | striptags }}")).toBe('ab c <!--d')
})

test('a date has its parts', () => {
  const date = new Date(2026, 2, 5, 15, 4, 9)
  const format =
    '%Y %y %m %d %-d %e %j %B %b %h %A %a %w %u %U %H %I %-I %p %M %S %D %F %R %T %x %X %c %% %Q'
  // `datetime(2026, 3, 5, 15, 4, 9).strftime(...)` in Python.
  expect(formatDate(date, format)).toBe(
    '2026 26 03 05 5  5 064 March Mar Mar Thursday Thu 4 4 09 15 03 3 PM 04 09 ' +
      '03/05/26 2026-03-05 15:04 15:04:09 03/05/26 15:04:09 Thu Mar  5 15:04:09 2026 % %Q',
  )
})
