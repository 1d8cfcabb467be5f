import { describe, expect, it } from 'vitest'
import { chatOf, errorOf, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/chat/completions'

const image = { type: 'image_url', image_url: { url: 'data:,' } }
const call = (text: unknown) => ({
  id: 'c',
  type: 'function',
  function: { name: 'f', arguments: text },
})
const calling = (text: unknown) =>
  messages({ role: 'assistant', content: null, tool_calls: [call(text)] })
const tool = { type: 'function', function: { name: 'f' } }
const messages = (...list: object[]) => ({ messages: [{ role: 'user', content: 'Hi' }, ...list] })

describe('what cannot be honoured', () => {
  it.each([
    ['tools[0]', { tools: [{ type: 'custom', custom: { name: 'f' } }] }],
    ['tool_choice', { tool_choice: { type: 'custom', custom: { name: 'f' } } }],
    ['n', { n: 2 }],
    ['verbosity', { verbosity: 'low' }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'x' } }],
    ['prediction', { prediction: { type: 'content', content: 'x' } }],
    ['web_search_options', { web_search_options: {} }],
    [
      'messages[0].content[1]',
      { messages: [{ role: 'system', content: [{ type: 'text', text: 'What?' }, image] }] },
    ],
    ['messages[1].content[0]', messages({ role: 'user', content: [{ type: 'file', file: {} }] })],
    ['messages[1].content[0]', messages({ role: 'user', content: [{ type: 'input_audio' }] })],
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
    expect(await said({ n: 2 })).toBe(
      '`n` = 2 is not supported by this server; send one request for each answer.',
    )
    expect(await said({ tools: [{ type: 'custom', custom: {} }] })).toBe(
      '`tools[0]` with type "custom" is not supported by this server; leave it out.',
    )
    expect(await said(messages({ role: 'tool', content: [image] }))).toBe(
      '`messages[1].content[0]` with type "image_url" is not supported by this server; put images into a message of role user.',
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
      'one of text, grammar, json_object, json_schema, not "xml"',
    ],
    ['frequency_penalty', { frequency_penalty: 3 }, 'a number from -2 to 2, not 3'],
    ['presence_penalty', { presence_penalty: '1' }, 'a number from -2 to 2, not "1"'],
    ['repetition_penalty', { repetition_penalty: 0 }, 'a number from 0.01 to 100, not 0'],
    ['min_p', { min_p: 2 }, 'a number from 0 to 1, not 2'],
    ['logit_bias', { logit_bias: 3 }, 'an object that maps token ids to biases, not 3'],
    [
      'logit_bias',
      { logit_bias: [] },
      'an object that maps token ids to biases, not an array of 0',
    ],
    ['logit_bias', { logit_bias: { 5: 1, a: 1 } }, 'an object whose keys are token ids, not "a"'],
    ['logit_bias', { logit_bias: { '-1': 3 } }, 'an object whose keys are token ids, not "-1"'],
    ['logit_bias.5', { logit_bias: { 5: 101 } }, 'a number from -100 to 100, not 101'],
    ['logprobs', { logprobs: 1 }, 'true or false, not 1'],
    ['top_logprobs', { logprobs: true, top_logprobs: 21 }, 'at most 20, not 21'],
    ['top_logprobs', { logprobs: true, top_logprobs: -1 }, 'an integer of at least 0, not -1'],
    ['top_logprobs', { top_logprobs: 3 }, '0 or left out unless logprobs is true, not 3'],
    ['tools[0]', { tools: ['f'] }, 'an object, not "f"'],
    ['tools[0].function', { tools: [{ type: 'function', function: 'f' }] }, 'an object, not "f"'],
    [
      'tools[0].function.name',
      { tools: [{ type: 'function', function: { name: '' } }] },
      'a string that is not empty, not ""',
    ],
    [
      'tools[1].function.parameters',
      { tools: [tool, { type: 'function', function: { name: 'g', parameters: [] } }] },
      'an object, not an array of 0',
    ],
    [
      'tool_choice.function.name',
      { tool_choice: { type: 'function', function: { name: '' } } },
      'a string that is not empty, not ""',
    ],
    [
      'tool_choice.allowed_tools.mode',
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'none', tools: [] } } },
      'one of auto, required, not "none"',
    ],
    ['parallel_tool_calls', { parallel_tool_calls: 'no' }, 'true or false, not "no"'],
    [
      'functions',
      { functions: [{ name: 'f' }], tools: [tool] },
      'left out when tools is sent, not an array of 1',
    ],
    [
      'functions[0].parameters',
      { functions: [{ name: 'f', parameters: 'x' }] },
      'an object, not "x"',
    ],
    [
      'function_call',
      { functions: [{ name: 'f' }], function_call: 'required' },
      'one of auto, none, not "required"',
    ],
    [
      'function_call',
      { function_call: { name: 'f' } },
      'auto, none or left out unless functions is sent, not an object',
    ],
    [
      'tool_choice',
      { functions: [{ name: 'f' }], function_call: { name: 'f' }, tool_choice: 'none' },
      'left out when functions is sent; send function_call instead, not "none"',
    ],
    [
      'tool_choice',
      { functions: [{ name: 'f' }], tool_choice: 'required' },
      'left out when functions is sent; send function_call instead, not "required"',
    ],
    [
      'messages[1].function_call.arguments',
      messages({ role: 'assistant', function_call: { name: 'f', arguments: '{"a":' } }),
      'the JSON text of an object, not "{\\"a\\":"',
    ],
    [
      'response_format.json_schema',
      { response_format: { type: 'json_schema', json_schema: 1 } },
      'an object, not 1',
    ],
    [
      'response_format.json_schema.schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: 'y' } } },
      'an object, not "y"',
    ],
    [
      'messages[1].tool_calls',
      messages({ role: 'assistant', tool_calls: {} }),
      'an array, not an object',
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      calling({}),
      'the JSON text of an object, not an object',
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      calling('{"a":'),
      'the JSON text of an object, not "{\\"a\\":"',
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      calling('[]'),
      'the JSON text of an object, not "[]"',
    ],
    ['messages[1].tool_call_id', messages({ role: 'tool', tool_call_id: 5 }), 'a string, not 5'],
    [
      'messages[1].reasoning_content',
      messages({ role: 'assistant', content: 'A', reasoning_content: ['Hm.'] }),
      'a string, not an array of 1',
    ],
    [
      'thinking.budget_tokens',
      { thinking: { type: 'enabled', budget_tokens: 50 }, max_tokens: 50 },
      'less than the limit of output tokens, 50, not 50',
    ],
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
    ['tools[0].type', chatOf({ tools: [{ name: 'f' }] })],
    ['tools[0].function', chatOf({ tools: [{ type: 'function' }] })],
    ['tool_choice.function', chatOf({ tool_choice: { type: 'function' } })],
    ['response_format.json_schema', chatOf({ response_format: { type: 'json_schema' } })],
    ['thinking.budget_tokens', chatOf({ thinking: { type: 'enabled' } })],
    ['messages', { model: '@acme/tiny' }],
    ['messages[0].role', { model: '@acme/tiny', messages: [{ content: 'Hi' }] }],
    ['messages[1].name', chatOf(messages({ role: 'function', content: '1' }))],
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
