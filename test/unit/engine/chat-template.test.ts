/** Chat templates: the constructs of Jinja and Python that they need, and the text of conversations. */
import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../../src/engine/engine.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import type { EscapeText } from '../../../src/engine/text/template-variables.ts'
import type { ChatMessage, Tool, ToolCall } from '../../../src/types/index.ts'
import { BRACKETS, JOINED, PLAIN, PYTHONIC, TAGGED } from '../../support/templates.ts'

const system: ChatMessage = { role: 'system', content: 'Be kind.' }
const user: ChatMessage = { role: 'user', content: 'Hi' }
const assistant: ChatMessage = { role: 'assistant', content: 'Yes?' }

const draw = (source: string, conversation: Conversation): string =>
  parseTemplate(source, { bos_token: '<s>', eos_token: '</s>' }).render(conversation).text
const drawMessages = (source: string, ...messages: ChatMessage[]): string =>
  draw(source, { messages })

const typed: Conversation = {
  messages: [user],
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

const PROPERTIES = '{% set p = tools[0].function.parameters.properties %}'

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
    'TrueFalseCB',
  ],
  ['{% for c in "abc" %}{{ c }}{{ "," if not loop.last }}{% endfor %}', 'a,b,c'],
  ['{% for m in nothing %}x{% else %}none{% endfor %}', 'none'],
  ['{% for x in [3, 1, 2] if x > 1 %}{{ x }}{% endfor %}', '32'],
  ['{{ nothing | trim }}{{ nothing | length }}{% for x in nothing | items %}x{% endfor %}', '0'],
  ["{{ {'a': 1}[nothing] is defined }}", 'False'],
  [
    '{% for x in [1, 2] %}{{ loop.previtem is defined }}{{ loop.nextitem }};{% endfor %}',
    'False2;True;',
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
    'TrueTrueTrue',
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
  ["{{ 'a' ~ 1 ~ true }}{{ 7 // 2 }}{{ 7 % 2 }}", 'a1True31'],
])('a construct has its result: %s', (source, text) => {
  expect(draw(source, typed)).toBe(text)
})

test.each([
  [
    '{% for name, about in p.items() %}{{ name }}:{{ about.type is string }} {% endfor %}',
    'items:True keys:False get:True values:True ',
  ],
  ['{{ p.keys() | join("+") }}', 'items+keys+get+values'],
  ["{{ p.get('get').type }}{{ p.get('none', 'x') }}", 'booleanx'],
  ["{{ p['items'].type }}{{ p['items']['items'].type }}", 'arraystring'],
])('a parameter may have the name of a method: %s', (source, text) => {
  expect(draw(PROPERTIES + source, typed)).toBe(text)
})

test('data becomes text as in Python', () => {
  expect(draw(`${PROPERTIES}{{ p | string }}`, typed)).toBe(
    "{'items': {'type': 'array', 'items': {'type': 'string'}}, " +
      "'keys': {'type': ['string', 'null'], 'enum': [\"it's\", 'a \"b\"'], 'default': None}, " +
      "'get': {'type': 'boolean', 'default': True, 'description': 'A\\n\\\\ line'}, " +
      "'values': {'type': 'number', 'default': 1.5}}",
  )
  expect(draw('{{ 1 | string }}{{ "a" | string }}{{ nothing | string }}', typed)).toBe('1a')
})

test('a date has its parts', () => {
  expect(draw('{{ strftime_now("%y-%m-%-d %I:%M %p %A %% %Q") }}', typed)).toMatch(
    /^\d\d-\d\d-\d{1,2} \d\d:\d\d [AP]M \w+day % %Q$/,
  )
})

test.each([
  ['{% include "x" %}', "(line 1 of the template): the tag 'include' is not supported."],
  ['{{ a | nope }}', "No filter named 'nope' found."],
  ["{{ 'a'.nope() }}", "'str object' has no attribute 'nope'."],
  ['a\n{{ none + 1 }}', '(line 2 of the template): unsupported operand type(s) for +'],
  ['{{ messages[', '(line 1 of the template): '],
  [
    '{% for m in messages %}{{ m.content + none }}{% endfor %}',
    'fails at message 1 of 1 (line 1 of the template): can only concatenate str',
  ],
])('a construct is an error of the request: %s', (source, message) => {
  expect(() => draw(source, typed)).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      code: 'template_failed',
      message: expect.stringContaining(message),
    }),
  )
})

const TURNS = '{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}'

/** As Gemma's: no system role, and turns alternate. */
const STRICT =
  "{% if messages[0].role == 'system' %}" +
  "{{ raise_exception('System role not supported') }}{% endif %}" +
  "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" +
  "{{ raise_exception('Conversation roles must alternate') }}{% endif %}" +
  '[{{ m.role }}: {{ m.content }}]{% endfor %}'

test('a template renders the conversation, special tokens and the begin of the answer', () => {
  const source = `{{ bos_token }}${TURNS}{% if add_generation_prompt %}[assistant: {% endif %}`
  expect(drawMessages(source, system, user)).toBe('<s>[system: Be kind.][user: Hi][assistant: ')
})

test('a template has a variable for reasoning only if the request has it', () => {
  for (const name of ['enable_thinking', 'thinking']) {
    const source = `{{ "as ever" if ${name} is not defined else ${name} }}`
    const { render } = parseTemplate(source, {})
    expect(render({ messages: [user] }).text).toBe('as ever')
    expect(render({ messages: [user], thinking: true }).text).toBe('True')
    expect(render({ messages: [user], thinking: false }).text).toBe('False')
  }
})

test('a system message that the template rejects is part of the first user turn', () => {
  expect(drawMessages(STRICT, system, user)).toBe('[user: Be kind.\n\nHi]')
  expect(drawMessages(STRICT, system, user, assistant, user)).toBe(
    '[user: Be kind.\n\nHi][assistant: Yes?][user: Hi]',
  )
})

test('a system message that the template leaves out is part of the first user turn', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content }}]{% endif %}{% endfor %}"
  expect(drawMessages(source, system, user)).toBe('[Be kind.\n\nHi]')
})

test.each(['Hi', 'hello', ' Hi ', 'user'])(
  'a system message counts as left out if its text is elsewhere: %j',
  (content) => {
    const source =
      "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}: {{ m.content }}]" +
      '{% endif %}{% endfor %}'
    const messages = [{ role: 'system', content } as const, { ...user, content: 'Hi hello' }]
    expect(draw(source, { messages })).toBe(`[user: ${content}\n\nHi hello]`)
  },
)

test('a later system message that the template leaves out is part of a user turn', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'system' or loop.first %}[{{ m.content }}]" +
    '{% endif %}{% endfor %}'
  const again: ChatMessage = { role: 'system', content: 'kind' }
  expect(drawMessages(source, system, user, again, user)).toBe('[Be kind.\n\nHi\n\nkind\n\nHi]')
  expect(drawMessages(source, system, user)).toBe('[Be kind.][Hi]')
})

test('a template may write a system message in its own way', () => {
  const source =
    '{% for m in messages %}[{{ m.role }}: {{ m.content | upper | tojson }}]{% endfor %}'
  const quoted: ChatMessage = { role: 'system', content: 'Be "kind".\n' }
  expect(drawMessages(source, quoted, user)).toBe('[system: "BE \\"KIND\\".\\n"][user: "HI"]')
  const silent: ChatMessage = { role: 'system', content: ' ' }
  expect(drawMessages(TURNS, silent, user)).toBe('[system:  ][user: Hi]')
})

test('turns in a row become one only if the template rejects them', () => {
  expect(drawMessages(STRICT, user, user, assistant, assistant, system, user)).toBe(
    '[user: Hi\n\nHi][assistant: Yes?\n\nYes?][user: Be kind.\n\nHi]',
  )
  expect(drawMessages(TURNS, user, user)).toBe('[user: Hi][user: Hi]')
})

test('an error of the template that remains is an error of the request', () => {
  expect(() => drawMessages(STRICT, assistant, user)).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      message: expect.stringContaining('roles must alternate'),
    }),
  )
})

test('a date is in English', () => {
  const text = drawMessages('{{ strftime_now("%d %B %Y %H:%M %%") }}', user)
  expect(text).toMatch(
    /^\d\d (January|February|March|April|May|June|July|August|\w+ember|October) \d{4} \d\d:\d\d %$/,
  )
})

test.each<[string, string]>([
  ['{% for i in range(100000000000) %}{% endfor %}', 'Range too big'],
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
  ['{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}', 'maximum recursion depth exceeded'],
  [
    `${'('.repeat(1_000)}1${')'.repeat(1_000)}`.replace(/^/, '{{ ').concat(' }}'),
    'nested too deeply',
  ],
])('a hostile template is an error of the request: %#', (source, why) => {
  expect(() => drawMessages(source, user)).toThrow(
    expect.objectContaining({ kind: 'invalid_request', message: expect.stringContaining(why) }),
  )
})

test('the text may be as long as the conversation', () => {
  const content = 'x'.repeat(9 * 1024 * 1024)
  expect(drawMessages(TURNS, { role: 'user', content })).toHaveLength(
    content.length + '[user: ]'.length,
  )
})

test('a template that would run for hours is stopped', () => {
  const loop = (body: string): string => `{% for i in range(2000) %}${body}{% endfor %}`
  const source = loop(loop(loop('{% set x = i %}')))
  expect(() => drawMessages(source, user)).toThrow(
    expect.objectContaining({ message: expect.stringContaining('too long') }),
  )
})

test('the error of a template names the message', () => {
  const source =
    "{% for m in messages[1:] %}{% if m.role == 'tool' %}\n" +
    "{{ raise_exception('No ' + m.role) }}{% endif %}{% endfor %}"
  expect(() => drawMessages(source, user, call('{}'), result(), user)).toThrow(
    expect.objectContaining({
      code: 'template_refused',
      param: 'messages',
      message:
        'The chat template of this model rejects the conversation at message 3 of 4: No tool',
    }),
  )
})

const tool: Tool = {
  name: 'warmth',
  description: 'How warm it is.',
  parameters: {
    type: 'object',
    properties: { place: { type: 'string', description: ' Where. ' }, items: { type: 'array' } },
    required: ['place'],
  },
}

const asked: ChatMessage = { role: 'user', content: 'How warm?' }
const call = (args: string, id = 'call_1'): ChatMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id, name: 'warmth', arguments: args }],
})
const result = (id = 'call_1', name = 'warmth'): ChatMessage => ({
  role: 'tool',
  toolCallId: id,
  name,
  content: '{"degrees": 21}',
})
const called = (args: string): Conversation => ({
  messages: [asked, call(args), result()],
  tools: [tool],
})

test('tools, calls and results are written as the template does', () => {
  expect(draw(TAGGED, called('{"place": "Bern", "n": 1.0}'))).toBe(
    '<|im_start|>system\n<tools>\n{"type": "function", "function": {"name": "warmth", ' +
      '"description": "How warm it is.", "parameters": {"type": "object", "properties": ' +
      '{"place": {"type": "string", "description": " Where. "}, "items": {"type": "array"}}, ' +
      '"required": ["place"]}}}\n</tools>\nAnswer in <tool_call></tool_call>.<|im_end|>\n' +
      '<|im_start|>user\nHow warm?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n' +
      '{"name": "warmth", "arguments": {"place": "Bern", "n": 1.0}}\n</tool_call><|im_end|>\n' +
      '<|im_start|>user\n<tool_response>\n{"degrees": 21}\n</tool_response><|im_end|>\n' +
      '<|im_start|>assistant\n',
  )
})

test('arguments have the spaces of the template', () => {
  expect(draw(TAGGED, called('{"place":"Bern","n":[1,2]}'))).toContain(
    '"arguments": {"place": "Bern", "n": [1, 2]}}',
  )
})

test('arguments are text for a template that concatenates them', () => {
  expect(draw(JOINED, called('{"place":"Bern"}'))).toBe(
    '<|im_start|>How warm?<tool_call>function:warmth\n{"place":"Bern"}<|im_end|>' +
      '<result>{"degrees": 21}<|im_start|>assistant<think>\n',
  )
})

test('a message with calls has no content of "None"', () => {
  const source =
    '{% for m in messages %}[{{ m.content }}]{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}' +
    '{% endfor %}{% endfor %}'
  expect(draw(source, called('{"place": "Bern"}'))).toBe(
    '[How warm?][]{"place": "Bern"}[{"degrees": 21}]',
  )
})

test('arguments are data for a template that iterates them', () => {
  const text = draw(PYTHONIC, called('{"place":"Bern","n":2,"far":true,"at":{"x":null}}'))
  expect(text).toContain('<tool_call>warmth(place="Bern", n=2, far=True, at={\'x\': None})')
  expect(text).toContain('def warmth(place: string! Where., items: array ) # How warm it is.\n')
})

test('a call and its result have the same short id if the template needs one', () => {
  const conversation: Conversation = {
    messages: [
      asked,
      {
        role: 'assistant',
        content: '',
        toolCalls: [
          { id: 'call_1', name: 'warmth', arguments: '{}' },
          { id: 'aB3dE6gH9', name: 'warmth', arguments: '{}' },
        ],
      },
      result('call_1'),
      result('aB3dE6gH9'),
      { role: 'assistant', content: 'Warm.' },
      { role: 'user', content: 'And now?' },
    ],
    tools: [tool],
  }
  const text = draw(BRACKETS, conversation)
  const [first, second] = [...text.matchAll(/"id": "(\w+)"/g)].map(([, id]) => id)
  expect(first).toMatch(/^[a-z0-9]{9}$/)
  expect(second).toBe('aB3dE6gH9')
  expect([...text.matchAll(/"call_id": "(\w+)"/g)].map(([, id]) => id)).toEqual([first, second])
  expect(text.indexOf('[TOOLS]')).toBeGreaterThan(text.indexOf('Warm.'))
})

test('a result has the name of its call for a template that fails without one', () => {
  const source = '{% for m in messages %}{{ m.name }};{% endfor %}'
  const strict = "{% for m in messages if m.role == 'tool' %}{{ m.name + ';' }}{% endfor %}"
  const messages = [asked, call('{}'), result('call_1', '')]
  expect(draw(source, { messages })).toBe(';;;')
  expect(draw(strict, { messages })).toBe('warmth;')
  expect(draw(source, { messages: [asked, result('other', 'own')] })).toBe(';own;')
})

describe.each([
  '{"place": "Be',
  '{"list": [1, 2,',
  'call the office',
  '{place: "Bern"}',
  '{"a": Infinity}',
  'true',
  '["Bern"]',
  '{"a": "$&\\',
])('arguments that are no JSON object are written as they are: %s', (args) => {
  test.each([
    ['as text', TAGGED, `{"name": "warmth", "arguments": ${args}}`],
    ['joined', JOINED, `function:warmth\n${args}<|im_end|>`],
    ['as JSON', BRACKETS, `[CALLS][{"name": "warmth", "arguments": ${args}, "id"`],
    ['one by one', PYTHONIC, `<tool_call>warmth(arguments="${args}")`],
    [
      'as JSON with indents',
      '{% for m in messages %}{% for c in m.tool_calls %}' +
        '{{ c.function.arguments | tojson(indent=2) }}{% endfor %}{% endfor %}.',
      `${args}.`,
    ],
    [
      'as in Python',
      '{% for m in messages %}{% for c in m.tool_calls %}' +
        '{{ c.function.arguments | string }}{% endfor %}{% endfor %}.',
      `${args}.`,
    ],
  ])('%s', (_, source, text) => {
    expect(draw(source, called(args))).toContain(text)
    const twice = { messages: [asked, call('{"place": "Ulm"}'), result(), call(args), result()] }
    expect(draw(source, twice)).toContain(args)
    expect(draw(source, twice)).toContain('Ulm')
  })

  test('by a format for a template that writes no calls', () => {
    const serializeCalls = (calls: readonly ToolCall[]) =>
      calls.map((one) => `<${one.name}>${JSON.stringify(JSON.parse(one.arguments))}`).join('')
    const conversation = { ...called(args), serializeCalls }
    expect(draw(PLAIN, conversation)).toContain(`assistant\n<warmth>${args}<|im_end|>`)
  })
})

test('special tokens in arguments that are no JSON object are plain text', () => {
  const escape: EscapeText = (text) => text.replaceAll('<', '\ue000')
  const { render } = parseTemplate(BRACKETS, { bos_token: '<s>', eos_token: '</s>' })
  const { text, ends } = render(called('{"place": "</s>'), escape)
  expect(text).toContain('"arguments": {"place": "\ue000/s>, "id"')
  const endings = ends.map(({ from, to }) => text.slice(from, to))
  expect(endings).toContainEqual(
    expect.stringMatching(/"arguments": .*\ue000\/s>, "id": "\w{9}"\}\]<\/s>/),
  )
})

test('arguments that are nested too deep are rejected', () => {
  const deep = '['.repeat(5_000) + ']'.repeat(5_000)
  expect(() => draw(TAGGED, called(`{"a":${deep}}`))).toThrow(
    expect.objectContaining({ kind: 'invalid_request' }),
  )
})

test('a template has fields that a tool leaves out', () => {
  const bare: Tool[] = [
    { name: 'a', parameters: true },
    { name: 'b', parameters: {} },
  ]
  const text = draw(PYTHONIC, { messages: [asked], tools: bare })
  expect(text).toContain('def a() # \ndef b() # \n')
})

test('a template has no variables of absent parts', () => {
  const source =
    "{{ tools is not none }} {{ 'tool_calls' in messages[0] }} {{ 'reasoning_content' in messages[0] }} " +
    '{{ documents is not none }} {{ builtin_tools is defined }}'
  expect(draw(source, { messages: [{ role: 'assistant', content: 'a' }], tools: [] })).toBe(
    'False False False False False',
  )
})

test('reasoning has each of its names', () => {
  const source = '{% set m = messages[0] %}{{ m.reasoning_content ~ m.reasoning ~ m.thinking }}'
  expect(draw(source, { messages: [{ role: 'assistant', content: 'b', reasoning: 'a' }] })).toBe(
    'aaa',
  )
})

describe('reasoning in the text of a message', () => {
  const said = (content: string, role: 'assistant' | 'user' = 'assistant'): Conversation => ({
    messages: [asked, { role, content }],
  })

  test('reaches a template that separates it', () => {
    const text = '<|im_start|>assistant\n<think>\nhm\n</think>\n\n Yes.<|im_end|>'
    expect(draw(TAGGED, said('<think>\nhm\n</think>\n Yes.'))).toContain(text)
    expect(draw(JOINED, said('<think>hm</think>Yes.'))).toContain('How warm?Yes.<|im_end|>')
  })

  test('keeps only the marks of a block at the start from being escaped', () => {
    const { render } = parseTemplate(JOINED, {})
    const escape = (content: string): string => content.replaceAll('think>', 'T>')
    const { text } = render(said(' <think>a<think>b</think>c</think>'), escape)
    expect(text).toContain('c</T>')
    const other = render(said('So <think>b</think>c'), escape)
    expect(other.text).toContain('So <T>b</T>c')
  })

  test('stays if the template does not support it', () => {
    expect(draw(PLAIN, said('<think>hm</think>Yes.'))).toContain('\n<think>hm</think>Yes.<')
  })

  test('is text in messages of others, and after other text', () => {
    for (const [content, role] of [
      ['<think>hm</think>Yes.', 'user'],
      ['So: <think>x', 'assistant'],
    ] as const) {
      expect(draw(TAGGED, said(content, role))).toContain(`${role}\n${content}<|im_end|>`)
    }
  })
})

test('variables of a request are escaped, and do not replace the messages', () => {
  const { render } = parseTemplate('{{ mode }} {{ thinking }} {{ messages | length }}', {})
  const conversation = {
    messages: [asked],
    thinking: true,
    variables: { mode: ['<s>'], messages: 3 },
  }
  const { text } = render(conversation, (content) => content.replaceAll('<', '('))
  expect(text).toBe("['(s>'] True 1")
})

test('the content of calls is one empty part for a template that fails otherwise', () => {
  const source =
    '{% for m in messages %}{% if m.tool_calls %}{% if not m.content[0].text is defined %}' +
    "{{ raise_exception('No.') }}{% endif %}{{ m.tool_calls[0].function.arguments }}{% endif %}" +
    '{% endfor %}'
  expect(draw(source, { messages: [asked, call('{"place": "Rome"}'), result()] })).toContain('Rome')
})

test('several system messages at the start become one if the template takes one', () => {
  const source =
    '{% for m in messages %}{% if loop.first or m.role != "system" %}[{{ m.role }}: {{ m.content }}]' +
    '{% endif %}{% endfor %}'
  const kind: ChatMessage = { role: 'system', content: 'Be brief.' }
  expect(draw(source, { messages: [system, kind, asked] })).toBe(
    '[system: Be kind.\n\nBe brief.][user: How warm?]',
  )
})

test('reasoning that the template rejects beside a call is left out', () => {
  const source =
    '{% for m in messages %}{% if m.tool_calls and m.thinking %}' +
    "{{ raise_exception('Not both.') }}{% endif %}[{{ m.role }}]{% endfor %}"
  const thought = { ...call('{}'), reasoning: 'hm' } as ChatMessage
  expect(draw(source, { messages: [asked, thought, result()] })).toBe('[user][assistant][tool]')
})

test('calls and results stay if turns become one', () => {
  const strict =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No.') }}{% endif %}" +
    '[{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}!{{ c.function.name }}{% endfor %}]{% endfor %}'
  expect(draw(strict, { messages: [system, asked, call('{}'), result(), result()] })).toBe(
    '[user: Be kind.\n\nHow warm?][assistant: !warmth][tool: {"degrees": 21}][tool: {"degrees": 21}]',
  )
})
