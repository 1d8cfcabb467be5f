import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../../src/engine/engine.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'

const conversation: Conversation = {
  messages: [{ role: 'user', content: 'Hi' }],
  tools: [
    {
      name: 'f',
      parameters: {
        type: 'object',
        properties: {
          items: { type: 'array', items: { type: 'string' } },
          keys: { type: ['string', 'null'], enum: ["it's", 'a "b"'], default: null },
          get: { type: 'boolean', default: true, description: 'A\n\\ line' },
          values: { type: 'number', default: 1.5 },
        },
      },
    },
  ],
}

const draw = (source: string): string => parseTemplate(source, {}).render(conversation).text
const PROPERTIES = '{% set p = tools[0].function.parameters.properties %}'

describe('constructs that templates count on', () => {
  test.each([
    ["{{ '\n\n a \n'.strip('\\n') }}|", ' a |'],
    ["{{ '\n\n a \n'.lstrip('\\n') }}|", ' a \n|'],
    ["{{ '\n a \n\n'.rstrip('\\n') }}|", '\n a |'],
    ["{{ '  a  '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|", 'a|a | a|'],
    ["{{ 'xyaxy'.strip('xy') }}{{ ''.strip('x') }}", 'a'],
    ["{{ 'a-b-c'.split('-')[-1] }}{{ 'a-b-c'.split('-', 1)[1] }}", 'cb-c'],
    [
      "{{ 'a b'.removeprefix('a ') }}{{ 'a b'.removesuffix(' b') }}{{ 'a'.removesuffix('b') }}",
      'baa',
    ],
    ["{{ 'banana'.find('n') }}{{ 'a'.find('n') }}{{ 'banana'.count('an') }}", '2-12'],
    ["{{ 'a\nb\n'.splitlines() | join('+') }}", 'a+b'],
    [
      "{{ 'ab'.startswith('a') }}{{ 'ab'.endswith('a') }}{{ 'ab'.replace('a', 'c').upper() }}",
      'truefalseCB',
    ],
    ['{% for c in "abc" %}{{ c }}{{ "," if not loop.last }}{% endfor %}', 'a,b,c'],
    ['{% for m in nothing %}x{% else %}none{% endfor %}', 'none'],
    ['{% for x in [3, 1, 2] if x > 1 %}{{ x }}{% endfor %}', '32'],
    ['{{ nothing | trim }}{{ nothing | length }}{% for x in nothing | items %}x{% endfor %}', '0'],
    ["{{ {'a': 1}[nothing] is defined }}", 'false'],
    [
      '{% for x in [1, 2] %}{{ loop.previtem is defined }}{{ loop.nextitem }};{% endfor %}',
      'false2;true;',
    ],
    [
      '{% set ns = namespace(a=1) %}{% for x in [1, 2] %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}',
      '4',
    ],
    ['{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}', '1213'],
    ['{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}', '<x>'],
    ['{% generation %}a{% endgeneration %}b', 'ab'],
    [
      '{{ messages is iterable }}{{ messages[0] is mapping }}{{ messages[0].content is string }}',
      'truetruetrue',
    ],
    ['{{ [1, 2, 3][::-1] | tojson }}{{ "abc"[:-1] }}{{ [1, 2, 3][1:] | length }}', '[3, 2, 1]ab2'],
    ['{% for x in range(1, 9, 2) %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}', '13'],
    [
      "{{ [{'a': 'x'}, {'a': 'y'}] | selectattr('a', 'equalto', 'y') | map(attribute='a') | join }}",
      'y',
    ],
    ["{{ {'b': 1, 'a': [true, none]} | tojson }}", '{"b": 1, "a": [true, null]}'],
    ["{{ {'a': {'b': 1}} | tojson(indent=2) }}", '{\n  "a": {\n    "b": 1\n  }\n}'],
    ["{{ 'a' if nothing is not defined else 'b' }}{{ nothing | default('c') }}", 'ac'],
    ["{{ 'a' ~ 1 ~ true }}{{ 7 // 2 }}{{ 7 % 2 }}", 'a1true31'],
  ])('%s', (source, text) => {
    expect(draw(source)).toBe(text)
  })
})

describe('names of parameters that are names of methods too', () => {
  test.each([
    [
      '{% for name, about in p.items() %}{{ name }}:{{ about.type is string }} {% endfor %}',
      'items:true keys:false get:true values:true ',
    ],
    ['{{ p.keys() | join("+") }}', 'items+keys+get+values'],
    ["{{ p.get('get').type }}{{ p.get('none', 'x') }}", 'booleanx'],
    ["{{ p['items'].type }}{{ p.items['items'].type }}", 'arraystring'],
  ])('%s', (source, text) => {
    expect(draw(PROPERTIES + source)).toBe(text)
  })
})

test('shows data as Python does where it is made text', () => {
  expect(draw(`${PROPERTIES}{{ p | string }}`)).toBe(
    "{'items': {'type': 'array', 'items': {'type': 'string'}}, " +
      "'keys': {'type': ['string', 'null'], 'enum': [\"it's\", 'a \"b\"'], 'default': None}, " +
      "'get': {'type': 'boolean', 'default': True, 'description': 'A\\n\\\\ line'}, " +
      "'values': {'type': 'number', 'default': 1.5}}",
  )
  expect(draw('{{ 1 | string }}{{ "a" | string }}{{ nothing | string }}')).toBe('1a')
})

test('knows the parts of a date', () => {
  expect(draw('{{ strftime_now("%y-%m-%-d %I:%M %p %A %% %Q") }}')).toMatch(
    /^\d\d-\d\d-\d{1,2} \d\d:\d\d [AP]M \w+day % %Q$/,
  )
})

test.each(['{% include "x" %}', '{{ a | nope }}', "{{ 'a'.nope() }}", '{{ none + 1 }}'])(
  'says that it cannot run %s',
  (source) => {
    expect(() => draw(source)).toThrow(expect.objectContaining({ kind: 'unavailable' }))
  },
)
