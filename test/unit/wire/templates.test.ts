/** What the chat template of a model gets of a request, and how its errors reach the client. */
import { expect, test } from 'vitest'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { scripted } from '../generation/scripted.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send, TINY } from './scripted-host.ts'

const STYLES = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const

/** A host with a template, and the texts that it has rendered. */
function templateHost(source: string) {
  const texts: string[] = []
  const template = parseTemplate(source, {})
  const engine = scripted(['Hello'], { template: source })
  const prepare: typeof engine.prepare = (conversation) => {
    texts.push(template.render(conversation).text)
    return { tokens: [1], boundaries: [1], opening: '' }
  }
  const host = scriptedHost({
    overrides: {
      async generate(request) {
        await planGeneration({ ...engine, prepare }, request)
        const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 1, reasoningTokens: 0 }
        return {
          events: (async function* () {
            yield { type: 'finish' as const, reason: 'stop' as const, stopSequence: null, usage }
          })(),
        }
      },
    },
  })
  return { host, texts }
}

/** A body with one message and a tool, whose schema is the text. */
function bodyWith(path: (typeof STYLES)[number], schema: string): string {
  const named = '"name": "f", "description": "F"'
  if (path === '/v1/messages')
    return JSON.stringify(messageOf({ tools: [] })).replace(
      '"tools":[]',
      `"tools": [{${named}, "input_schema": ${schema}}]`,
    )
  if (path === '/v1/responses')
    return `{"model": "${TINY.tag}", "input": "Hi", "tools": [{"type": "function", ${named}, "parameters": ${schema}}]}`
  return JSON.stringify(chatOf({ tools: [] })).replace(
    '"tools":[]',
    `"tools": [{"type": "function", "function": {${named}, "parameters": ${schema}}}]`,
  )
}

const LISTS_TOOLS =
  '{% for tool in tools or [] %}{{ tool.function | tojson }}{% endfor %}' +
  '{% for m in messages %}{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }}{% endfor %}'

// The text on the right is that of `json.dumps(json.loads(schema))` in Python.
test.each([
  ['{"minimum":1.0,"maximum":1e5}', '{"minimum": 1.0, "maximum": 100000.0}'],
  ['{"default":12345678901234567890}', '{"default": 12345678901234567890}'],
  ['{"enum":[1e16, 1E-7, -0.0, 1.50, 1e+22, 2]}', '{"enum": [1e+16, 1e-07, -0.0, 1.5, 1e+22, 2]}'],
  [
    '{"b":{"2":{},"1":{}},"a":["}", {"c":3.0}]}',
    '{"b": {"2": {}, "1": {}}, "a": ["}", {"c": 3.0}]}',
  ],
  ['{"a":"1.0 \\" \\\\","b\\"":2.0}', '{"a": "1.0 \\" \\\\", "b\\"": 2.0}'],
  ['{"parameters":{"x":1.0},"x":1}', '{"parameters": {"x": 1.0}, "x": 1}'],
])('a template gets the numbers of a schema as they were sent: %s', async (sent, shown) => {
  const rest = '"type":"object","properties":{}'
  const schema = sent.replace('{', `{${rest},`)
  const expected = shown.replace('{', '{"type": "object", "properties": {}, ')
  for (const path of STYLES) {
    const { host, texts } = templateHost(LISTS_TOOLS)
    const response = await send(host, path, {
      body: bodyWith(path, schema),
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status, await response.text()).toBe(200)
    expect(texts.at(-1), path).toContain(expected)
  }
})

test('each of several tools keeps its own numbers, in the order of the tools', async () => {
  const { host, texts } = templateHost(LISTS_TOOLS)
  const tool = (name: string, number: string): string =>
    `{"type": "function", "function": {"name": "${name}", "parameters": ` +
    `{"type": "object", "properties": {"x": {"maximum": ${number}}}}}}`
  const tools = `[${tool('a', '1')}, ${tool('b', '2.0')}, ${tool('c', '3.5')}, ${tool('d', '4.00')}]`
  const body = JSON.stringify(chatOf({ tools: [] })).replace('"tools":[]', `"tools":${tools}`)
  await send(host, STYLES[0], { body, headers: { 'content-type': 'application/json' } })
  const numbers = [...(texts.at(-1) ?? '').matchAll(/"maximum": ([\d.]+)/g)].map(([, text]) => text)
  expect(numbers).toEqual(['1', '2.0', '3.5', '4.0'])
})

// A regular expression for whole strings fails from about three million escapes on.
test('a long text with many escapes may stand beside numbers', async () => {
  const { host, texts } = templateHost(LISTS_TOOLS)
  const long = '\\n'.repeat(4_000_000)
  const tool = '{"type": "function", "function": {"name": "f", "parameters": {"maximum": 1.0}}}'
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: `{"a":"${long}"}` } }
  const messages = JSON.stringify([
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: '1' },
  ])
  const body = `{"model": "${TINY.tag}", "messages": ${messages}, "user": "${long}", "tools": [${tool}]}`
  await send(host, STYLES[0], { body, headers: { 'content-type': 'application/json' } })
  expect(texts.at(-1)).toContain('"maximum": 1.0')
})

test('a template gets the arguments of an earlier call with their numbers', async () => {
  const { host, texts } = templateHost(LISTS_TOOLS)
  const text = '{"a": 1.0, "b": [1e5, 2], "2": {"c": 12345678901234567890}}'
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: text } }
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: '1' },
  ]
  await send(host, STYLES[0], { body: { model: TINY.tag, messages } })
  expect(texts.at(-1)).toContain('{"a": 1.0, "b": [100000.0, 2], "2": {"c": 12345678901234567890}}')
})

const REJECTS =
  '{% for m in messages %}{% if m.role == "user" and "no" in m.content %}' +
  '{{ raise_exception("Write yes instead.") }}{% endif %}{{ m.content }}{% endfor %}'

test.each([
  [REJECTS, /Write yes instead\..*message 1 of 1|message 1 of 1.*Write yes instead\./s],
  ['{{ messages[0].content }}{{ messages[0].content + 1 }}', /can only concatenate str/],
  ["{{ messages[0].content }}{% include 'other' %}", /include/],
  ['{{ messages[0].content | nonsense }}', /No filter named 'nonsense'/],
  ['{{ messages[0].content }}{% if %}', /line 1/],
])('a template that fails is a 400 that says why, in each style: %s', async (source, message) => {
  for (const path of STYLES) {
    for (const stream of [false, true]) {
      const { host } = templateHost(source)
      const messages = [{ role: 'user', content: 'no' }]
      const body =
        path === '/v1/responses'
          ? { model: TINY.tag, input: messages, stream }
          : { ...messageOf(), messages, stream }
      const error = await errorOf(await send(host, path, { body }), 400)
      expect(error.message, path).toMatch(message)
      expect(error.message).not.toMatch(/load it again/)
    }
  }
})
