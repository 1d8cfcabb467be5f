import { describe, expect, it } from 'vitest'
import { chatOf, errorOf, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/chat/completions'

const image = { type: 'image_url', image_url: { url: 'data:,' } }
const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
const tool = { type: 'function', function: { name: 'f' } }
const messages = (...list: object[]) => ({ messages: [{ role: 'user', content: 'Hi' }, ...list] })

describe('what cannot be honoured', () => {
  it.each([
    ['tools', { tools: [tool] }],
    ['tool_choice', { tool_choice: 'required' }],
    ['tool_choice', { tool_choice: { type: 'function', function: { name: 'f' } } }],
    ['tool_choice', { tool_choice: { type: 'allowed_tools', allowed_tools: {} } }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: 'required' }],
    ['function_call', { function_call: { name: 'f' } }],
    ['reasoning_effort', { reasoning_effort: 'minimal' }],
    ['reasoning_effort', { reasoning_effort: 'xhigh' }],
    ['response_format', { response_format: { type: 'json_object' } }],
    [
      'response_format',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: {} } } },
    ],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['n', { n: 2 }],
    ['logit_bias', { logit_bias: { 42: 1 } }],
    ['frequency_penalty', { frequency_penalty: 0.5 }],
    ['presence_penalty', { presence_penalty: -0.5 }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'x' } }],
    ['prediction', { prediction: { type: 'content', content: 'x' } }],
    ['web_search_options', { web_search_options: {} }],
    [
      'messages[0].content[1]',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, image] }] },
    ],
    ['messages[1].content[0]', messages({ role: 'user', content: [{ type: 'file', file: {} }] })],
    ['messages[1].content[0]', messages({ role: 'user', content: [{ type: 'input_audio' }] })],
    ['messages[1].tool_calls', messages({ role: 'assistant', content: null, tool_calls: [call] })],
    [
      'messages[1].function_call',
      messages({ role: 'assistant', content: null, function_call: { name: 'f' } }),
    ],
    ['messages[1]', messages({ role: 'tool', tool_call_id: 'c', content: '1' })],
    ['messages[1]', messages({ role: 'function', name: 'f', content: '1' })],
  ])('is refused by name: %s', async (param, fields) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: chatOf(fields) }), 400)
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      param,
      code: 'unsupported_parameter',
    })
    expect(error.message).toContain(`\`${param}\``)
    expect(error.message).toContain('not supported')
    expect(error.details['unsupported']).toEqual([param])
  })

  it('is said in a sentence that helps', async () => {
    const said = async (fields: object) =>
      (await errorOf(await send(scriptedHost(), PATH, { body: chatOf(fields) }), 400)).message
    expect(await said({ tools: [tool] })).toBe(
      '`tools` is not supported by this server; leave it out.',
    )
    expect(await said({ reasoning_effort: 'high' })).toBe(
      '`reasoning_effort` = "high" is not supported by this server; send none or leave it out.',
    )
    expect(await said(messages({ role: 'user', content: [image] }))).toBe(
      '`messages[1].content[0]` with type "image_url" is not supported by this server; leave it out.',
    )
    expect(await said(messages({ role: 'tool', content: '' }))).toBe(
      '`messages[1]` with role "tool" is not supported by this server; leave it out.',
    )
  })
})

describe('what is wrong', () => {
  const roles = 'one of system, developer, user, assistant, tool, function'
  const types = 'one of text, image_url, input_audio, file, refusal'
  it.each([
    ['model', { model: 5 }, 'a string, not 5'],
    ['model', { model: '' }, 'a string that is not empty, not ""'],
    ['model', { model: null }, 'a string, not null'],
    ['messages', { messages: 'Hi' }, 'an array, not "Hi"'],
    ['messages', { messages: [] }, 'an array with at least one message, not an array of 0'],
    ['messages[0]', { messages: ['Hi'] }, 'an object, not "Hi"'],
    ['messages[0]', { messages: [null] }, 'an object, not null'],
    ['messages[0]', { messages: [[]] }, 'an object, not an array of 0'],
    ['messages[1].role', messages({ role: 'robot', content: '' }), `${roles}, not "robot"`],
    [
      'messages[1].role',
      messages({ role: 'constructor', content: '' }),
      `${roles}, not "constructor"`,
    ],
    [
      'messages[1].content',
      messages({ role: 'user', content: false }),
      'a string or an array of parts, not false',
    ],
    [
      'messages[1].content',
      messages({ role: 'user', content: { type: 'text' } }),
      'a string or an array of parts, not an object',
    ],
    ['messages[1].content[0]', messages({ role: 'user', content: ['Hi'] }), 'an object, not "Hi"'],
    [
      'messages[1].content[0].type',
      messages({ role: 'user', content: [{ type: 'banana' }] }),
      `${types}, not "banana"`,
    ],
    [
      'messages[1].content[0].text',
      messages({ role: 'user', content: [{ type: 'text', text: 1 }] }),
      'a string, not 1',
    ],
    ['stream', { stream: 'true' }, 'true or false, not "true"'],
    ['stream_options', { stream_options: true }, 'an object, not true'],
    [
      'stream_options.include_usage',
      { stream_options: { include_usage: 1 } },
      'true or false, not 1',
    ],
    ['temperature', { temperature: 2.1 }, 'a number from 0 to 2, not 2.1'],
    ['temperature', { temperature: -1 }, 'a number from 0 to 2, not -1'],
    ['temperature', { temperature: '1' }, 'a number from 0 to 2, not "1"'],
    ['top_p', { top_p: -1 }, 'a number from 0 to 1, not -1'],
    ['top_p', { top_p: 1.5 }, 'a number from 0 to 1, not 1.5'],
    ['top_k', { top_k: -1 }, 'an integer of at least 0, not -1'],
    ['seed', { seed: 1.5 }, 'an integer, not 1.5'],
    ['max_tokens', { max_tokens: 0 }, 'an integer of at least 1, not 0'],
    ['max_completion_tokens', { max_completion_tokens: 1.5 }, 'an integer of at least 1, not 1.5'],
    ['stop', { stop: '' }, 'a string that is not empty, not ""'],
    ['stop', { stop: 5 }, 'an array, not 5'],
    ['stop', { stop: Array(65).fill('x') }, 'an array of at most 64 strings, not an array of 65'],
    ['stop[1]', { stop: ['x', ''] }, 'a string that is not empty, not ""'],
    ['n', { n: 0 }, 'an integer of at least 1, not 0'],
    ['tools', { tools: {} }, 'an array, not an object'],
    ['tool_choice', { tool_choice: 'banana' }, 'one of auto, none, required, not "banana"'],
    [
      'tool_choice.type',
      { tool_choice: { type: 'x' } },
      'one of auto, none, any, tool, function, allowed_tools, custom, not "x"',
    ],
    [
      'reasoning_effort',
      { reasoning_effort: 'banana' },
      'one of none, minimal, low, medium, high, xhigh, max, not "banana"',
    ],
    [
      'response_format.type',
      { response_format: { type: 'xml' } },
      'one of text, json_object, json_schema, not "xml"',
    ],
    ['frequency_penalty', { frequency_penalty: 3 }, 'a number from -2 to 2, not 3'],
    ['logit_bias', { logit_bias: 3 }, 'an object, not 3'],
    ['logit_bias', { logit_bias: [] }, 'an object, not an array of 0'],
    ['stream_options', { stream_options: [] }, 'an object, not an array of 0'],
    ['response_format', { response_format: [] }, 'an object, not an array of 0'],
    ['tool_choice', { tool_choice: ['auto'] }, 'an object, not an array of 1'],
    [
      'messages[1].content[0]',
      messages({ role: 'user', content: [['text']] }),
      'an object, not an array of 1',
    ],
  ])('is told by its path and what is allowed: %s %o', async (param, fields, said) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: chatOf(fields) }), 400)
    expect(error).toMatchObject({ type: 'invalid_request_error', param, code: 'invalid_value' })
    expect(error.message).toBe(`\`${param}\` must be ${said}.`)
  })

  it.each([
    ['model', { messages: [{ role: 'user', content: 'Hi' }] }],
    ['messages', { model: '@acme/tiny' }],
    ['messages[0].role', { model: '@acme/tiny', messages: [{ content: 'Hi' }] }],
    [
      'messages[0].content[0].type',
      { model: '@acme/tiny', messages: [{ role: 'user', content: [{ text: 'Hi' }] }] },
    ],
  ])('is told when it is missing: %s', async (param, body) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body }), 400)
    expect(error).toMatchObject({
      message: `\`${param}\` is required.`,
      param,
      code: 'missing_required_parameter',
    })
  })

  it('is quoted no longer than needed', async () => {
    const error = await errorOf(
      await send(scriptedHost(), PATH, { body: chatOf({ stream: 'x'.repeat(1e6) }) }),
      400,
    )
    expect(error.message.length).toBeLessThan(150)
  })

  it('comes from the host with its own words', async () => {
    const error = await errorOf(
      await send(scriptedHost(), PATH, { body: chatOf({ model: 'nope' }) }),
      404,
    )
    expect(error).toEqual({
      message: 'There is no model nope.',
      type: 'not_found_error',
      param: 'model',
      code: 'model_not_found',
      details: {},
    })
  })
})
