/** Cases that a server passes if it is a full upstream implementation. */
import assert from 'node:assert/strict'

/** Posts a body to a path below `/v1`. */
export type Ask = (path: string, body: object, signal?: AbortSignal) => Promise<Response>

export interface Case {
  name: string
  run(ask: Ask): Promise<void>
}

type Json = Record<string, never> & { [key: string]: Json }

const user = (content: string) => [{ role: 'user', content }]
const QUESTION = user('What is the capital of France? Answer in one word.')

async function readJson(response: Response): Promise<Json> {
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return JSON.parse(text) as Json
}

const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Returns the weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

export const CASES: readonly Case[] = [
  {
    name: 'chat completion with usage',
    async run(ask) {
      const body = { messages: QUESTION, temperature: 0, max_tokens: 200 }
      const answer = await readJson(await ask('chat/completions', body))
      assert.ok(String(answer['choices']?.[0 as never]?.['message']?.['content']).length > 0)
      assert.ok(Number(answer['usage']?.['prompt_tokens']) > 0)
    },
  },
  {
    name: 'streamed chat completion with its end marker',
    async run(ask) {
      const body = { messages: QUESTION, stream: true, max_tokens: 200 }
      const text = await (await ask('chat/completions', body)).text()
      assert.match(text, /"content":/)
      assert.ok(text.endsWith('data: [DONE]\n\n'), text.slice(-300))
    },
  },
  {
    name: 'message',
    async run(ask) {
      const answer = await readJson(await ask('messages', { messages: QUESTION, max_tokens: 200 }))
      assert.equal(answer['type'], 'message')
    },
  },
  {
    name: 'response',
    async run(ask) {
      const answer = await readJson(await ask('responses', { input: 'Say hello.', store: false }))
      assert.equal(answer['status'], 'completed')
    },
  },
  {
    name: 'token limit',
    async run(ask) {
      const body = { messages: user('Count from 1 to 1000.'), max_tokens: 5 }
      const answer = await readJson(await ask('chat/completions', body))
      assert.equal(answer['choices']?.[0 as never]?.['finish_reason'], 'length')
    },
  },
  {
    name: 'required tool call with JSON arguments',
    async run(ask) {
      const body = {
        messages: user('What is the weather in Paris?'),
        tools: [TOOL],
        tool_choice: { type: 'function', function: { name: 'get_weather' } },
        max_tokens: 300,
      }
      const answer = await readJson(await ask('chat/completions', body))
      const call = answer['choices']?.[0 as never]?.['message']?.['tool_calls']?.[0 as never]
      assert.equal(call?.['function']?.['name'], 'get_weather')
      assert.equal(typeof JSON.parse(String(call?.['function']?.['arguments'])).city, 'string')
    },
  },
  {
    name: 'JSON schema',
    async run(ask) {
      const format = { type: 'json_schema', json_schema: { name: 'city', schema: SCHEMA } }
      const body = { messages: QUESTION, response_format: format, max_tokens: 300 }
      const answer = await readJson(await ask('chat/completions', body))
      const text = String(answer['choices']?.[0 as never]?.['message']?.['content'])
      assert.deepEqual(Object.keys(JSON.parse(text) as object), ['city'])
    },
  },
  {
    name: 'abort',
    async run(ask) {
      const abort = new AbortController()
      const body = { messages: user('Count from 1 to 1000.'), stream: true, max_tokens: 1_000 }
      const response = await ask('chat/completions', body, abort.signal)
      const reader = response.body?.getReader()
      await reader?.read()
      abort.abort()
      await assert.rejects(async () => {
        while (!(await reader?.read())?.done);
      })
    },
  },
]
