import { describe, expect, it } from 'vitest'
import { chatOf, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/chat/completions'

/** What a field becomes on its way to the host. */
async function requestOf(fields: object) {
  const host = scriptedHost()
  const response = await send(host, PATH, { body: chatOf(fields) })
  expect(response.status, await response.text()).toBe(200)
  return { request: host.requests[0], ignored: response.headers.get('x-inorigin-ignored') }
}

describe('the fields of a chat completion', () => {
  it('reach the host', async () => {
    const { request, ignored } = await requestOf({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      seed: -7,
      max_completion_tokens: 64,
      max_tokens: 32,
      stop: ['a', 'b'],
    })
    expect(request).toEqual({
      model: '@acme/tiny',
      messages: [{ role: 'user', content: 'Hi' }],
      maxTokens: 64,
      sampling: { temperature: 0.5, topP: 0.9, topK: 40, seed: -7 },
      stop: ['a', 'b'],
    })
    expect(ignored).toBe('max_tokens')
  })

  it('have defaults that are the model’s', async () => {
    const { request } = await requestOf({})
    expect(request?.maxTokens).toBeUndefined()
    expect(Object.values(request?.sampling ?? {}).every((value) => value === undefined)).toBe(true)
    expect(request?.stop).toEqual([])
  })

  it.each([
    [{ max_tokens: 9 }, { maxTokens: 9 }],
    [{ max_tokens: 9, max_completion_tokens: null }, { maxTokens: 9 }],
    [{ temperature: 0 }, { sampling: { temperature: 0 } }],
    [{ temperature: 2 }, { sampling: { temperature: 2 } }],
    [{ top_k: 0 }, { sampling: { topK: 0 } }],
    [{ seed: 2 ** 63 }, { sampling: { seed: 2 ** 63 } }],
    [{ stop: 'END' }, { stop: ['END'] }],
    [{ stop: [] }, { stop: [] }],
    [{ stop: Array(64).fill('x') }, { stop: Array(64).fill('x') }],
    [{ stop: null }, { stop: [] }],
  ])('%o asks for %o', async (fields, asked) =>
    expect((await requestOf(fields)).request).toMatchObject(asked),
  )

  it('take messages in all their forms', async () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]
    const { request } = await requestOf({
      messages: [
        { role: 'system', content: 'S' },
        { role: 'developer', content: parts },
        { role: 'user', content: parts },
        { role: 'assistant', content: null },
        { role: 'assistant' },
        {
          role: 'assistant',
          content: 'A',
          reasoning_content: 'Hm.',
          refusal: null,
          tool_calls: [],
          function_call: null,
        },
        { role: 'system', content: 'late' },
        { role: 'user', content: '' },
      ],
    })
    expect(request?.messages).toEqual([
      { role: 'system', content: 'S' },
      { role: 'system', content: 'ab' },
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: '' },
      { role: 'assistant', content: '' },
      { role: 'assistant', content: 'A', reasoning: 'Hm.' },
      { role: 'system', content: 'late' },
      { role: 'user', content: '' },
    ])
  })

  it.each(['system', 'developer', 'user', 'assistant'])(
    'take a message of role %s without content as an empty one',
    async (role) => {
      const { request } = await requestOf({
        messages: [{ role }, { role, content: null }, { role, content: [] }],
      })
      expect(request?.messages.map(({ content }) => content)).toEqual(['', '', ''])
    },
  )

  it('may all be null but the two that are required', async () => {
    const names = [
      'stream',
      'stream_options',
      'max_completion_tokens',
      'max_tokens',
      'temperature',
      'top_p',
      'top_k',
      'seed',
      'stop',
      'n',
      'tools',
      'tool_choice',
      'functions',
      'function_call',
      'reasoning_effort',
      'response_format',
      'logprobs',
      'top_logprobs',
      'logit_bias',
      'frequency_penalty',
      'presence_penalty',
      'modalities',
      'audio',
      'prediction',
      'web_search_options',
      'user',
      'metadata',
      'store',
      'service_tier',
      'parallel_tool_calls',
    ]
    const { ignored } = await requestOf(Object.fromEntries(names.map((name) => [name, null])))
    expect(ignored).toBeNull()
  })

  it.each([
    { n: 1 },
    { tools: [] },
    { functions: [] },
    { tool_choice: 'auto' },
    { tool_choice: 'none' },
    { tool_choice: { type: 'auto' } },
    { tool_choice: { type: 'none' } },
    { function_call: 'none' },
    { reasoning_effort: 'none' },
    { response_format: { type: 'text' } },
    { logprobs: false },
    { top_logprobs: 0 },
    { logit_bias: {} },
    { frequency_penalty: 0 },
    { presence_penalty: 0 },
    { modalities: ['text'] },
  ])('may say what is so anyway: %o', async (fields) =>
    expect((await requestOf(fields)).ignored).toBeNull(),
  )

  it('without effect are listed', async () => {
    const { ignored } = await requestOf({
      user: 'u',
      metadata: { a: 1 },
      store: true,
      service_tier: 'auto',
      parallel_tool_calls: false,
      ünknown: 1,
      __proto__x: {},
      messages: [
        {
          role: 'user',
          name: 'Al',
          content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }],
        },
        { role: 'assistant', content: 'Ho', reasoning_content: 'Hm.' },
        { role: 'user', name: 'Al', content: 'Hi' },
      ],
    })
    expect(ignored).toBe(
      'messages[].name, messages[].content[].cache_control, ' +
        'user, metadata, store, service_tier, ?nknown, __proto__x',
    )
  })

  it('without effect for the host are listed too', async () => {
    const host = scriptedHost({ ignored: ['top_k', 'user'] })
    const response = await send(host, PATH, { body: chatOf({ user: 'u' }) })
    expect(response.headers.get('x-inorigin-ignored')).toBe('user, top_k')
  })

  it('are listed up to a length a header can have', async () => {
    const names = Object.fromEntries(
      Array.from({ length: 2000 }, (_, i) => [`${i}${'x'.repeat(500)}`, 1]),
    )
    expect((await requestOf(names)).ignored?.length).toBeLessThan(5000)
  })
})
