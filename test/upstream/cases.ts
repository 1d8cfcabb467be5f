/** Cases that a server passes if it is a full upstream implementation. */
import assert from 'node:assert/strict'

/** Posts a body to a path below `/v1`. */
export type Ask = (path: string, body: object, signal?: AbortSignal) => Promise<Response>

/** Abilities that options of the script state: reasoning, and the rest of an assistant message. */
export type Ability = 'reasons' | 'continues'

export interface Case {
  name: string
  /** What the server must be able to do, if not every one can. */
  needs?: Ability
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
    name: 'streamed message with its end marker',
    async run(ask) {
      const body = { messages: QUESTION, stream: true, max_tokens: 200 }
      const text = await (await ask('messages', body)).text()
      assert.match(text, /"type":"text_delta"/)
      assert.match(text, /event: message_stop\n.*\n\n$/)
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
        // No model would call the tool by itself.
        messages: user('What is inorigin?'),
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
    name: 'required tool call of a message, with the result in the next one',
    async run(ask) {
      const { name, description, parameters } = TOOL.function
      const tools = [{ name, description, input_schema: parameters }]
      const asked = user('What is the weather in Paris?')
      const fields = { tools, max_tokens: 300 }
      const tool_choice = { type: 'tool', name }
      const called = await readJson(
        await ask('messages', { ...fields, messages: asked, tool_choice }),
      )
      assert.equal(called['stop_reason'], 'tool_use')
      const content = called['content'] as unknown as Array<{ type: string; id: string }>
      const use = content.find(({ type }) => type === 'tool_use')
      const result = { type: 'tool_result', tool_use_id: use?.id, content: '21 degrees' }
      const messages = [
        ...asked,
        { role: 'assistant', content },
        { role: 'user', content: [result] },
      ]
      const answer = await readJson(await ask('messages', { ...fields, messages }))
      assert.equal(answer['type'], 'message')
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
    name: 'JSON schema of a message',
    async run(ask) {
      const output_config = { format: { type: 'json_schema', schema: SCHEMA } }
      const body = { messages: QUESTION, output_config, max_tokens: 300 }
      const answer = await readJson(await ask('messages', body))
      const content = answer['content'] as unknown as Array<{ type: string; text: string }>
      const text = content.find(({ type }) => type === 'text')?.text ?? ''
      assert.deepEqual(Object.keys(JSON.parse(text) as object), ['city'])
    },
  },
  {
    name: 'stop sequence',
    async run(ask) {
      const body = { messages: QUESTION, stop: ['a', 'e', 'i', 'o', 'u'], temperature: 0 }
      const answer = await readJson(await ask('chat/completions', { ...body, max_tokens: 300 }))
      const choice = answer['choices']?.[0 as never]
      assert.equal(choice?.['finish_reason'], 'stop')
      assert.doesNotMatch(String(choice?.['message']?.['content'] ?? ''), /[aeiou]/)
    },
  },
  {
    name: 'log probabilities',
    async run(ask) {
      const body = { messages: QUESTION, logprobs: true, top_logprobs: 2, max_tokens: 20 }
      const answer = await readJson(await ask('chat/completions', body))
      const tokens = answer['choices']?.[0 as never]?.['logprobs']?.['content']
      const [first] = tokens as unknown as Array<{ logprob: number; top_logprobs: unknown[] }>
      assert.ok(first && first.logprob <= 0 && first.top_logprobs.length === 2)
    },
  },
  {
    name: 'reasoning in both styles',
    needs: 'reasons',
    async run(ask) {
      const messages = user('What is 27 + 15?')
      const chat = { messages, reasoning_effort: 'low', max_tokens: 600 }
      const answer = await readJson(await ask('chat/completions', chat))
      const message = answer['choices']?.[0 as never]?.['message']
      assert.ok(String(message?.['reasoning_content'] ?? '').length > 0, 'It wrote no reasoning.')
      const thinking = { type: 'enabled', budget_tokens: 256 }
      const same = await readJson(await ask('messages', { messages, thinking, max_tokens: 600 }))
      const types = (same['content'] as unknown as Array<{ type: string }>).map(({ type }) => type)
      assert.ok(types.includes('thinking'), `The message has ${types.join()} only.`)
    },
  },
  {
    name: 'rest of an assistant message',
    needs: 'continues',
    async run(ask) {
      const prefix = 'The capital of'
      const messages = [...QUESTION, { role: 'assistant', content: prefix }]
      const body = { messages, temperature: 0, max_tokens: 50 }
      const chat = { ...body, continue_final_message: true, add_generation_prompt: false }
      const answer = await readJson(await ask('chat/completions', chat))
      const text = String(answer['choices']?.[0 as never]?.['message']?.['content'])
      assert.ok(text.length > 0 && !text.startsWith(prefix), text)
      const same = await readJson(await ask('messages', body))
      assert.equal((same['content'] as unknown as Array<{ text: string }>)[0]?.text, text)
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
