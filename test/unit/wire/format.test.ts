/** What the answer must be, how probable its tokens were, and whose field is to blame. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const schema = { type: 'object', properties: { a: { type: 'integer' } } }

describe('the format', () => {
  it.each([
    [{ response_format: null }, undefined],
    [{ response_format: { type: 'text' } }, undefined],
    [{ response_format: { type: 'json_object' } }, { type: 'json_object' }],
    [
      { response_format: { type: 'grammar', grammar: 'root ::= "a"' } },
      { type: 'grammar', grammar: 'root ::= "a"' },
    ],
    [{ response_format: { type: 'json_object', schema } }, { type: 'json_schema', schema }],
    [
      {
        response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } },
      },
      { type: 'json_schema', schema },
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      { type: 'json_schema', schema: {} },
    ],
  ])('of a chat completion is of %j %j', async (fields, format) => {
    const { request, ignored } = await askedOf(CHAT, chatOf(fields))
    expect(request.format).toEqual(format)
    expect(ignored).toBeNull()
  })

  it.each([
    [{ output_config: { format: null } }, undefined],
    [
      { output_config: { format: { type: 'json_schema', schema } } },
      { type: 'json_schema', schema },
    ],
    [{ output_format: { type: 'json_schema', schema } }, { type: 'json_schema', schema }],
    [{ response_format: { type: 'text' } }, undefined],
  ])('of a message is of %j %j', async (fields, format) => {
    const { request, ignored } = await askedOf(MESSAGES, messageOf(fields))
    expect(request.format).toEqual(format)
    expect(ignored).toBeNull()
  })
})

it('of a message that has two is the newer one, and the other is told as ignored', async () => {
  const both = {
    output_config: { format: { type: 'json_schema', schema } },
    output_format: { type: 'json_schema', schema: { type: 'string' } },
  }
  const { request, ignored } = await askedOf(MESSAGES, messageOf(both))
  expect([request.format, ignored]).toEqual([{ type: 'json_schema', schema }, 'output_format'])
})

describe('probabilities of tokens', () => {
  it.each([
    [{}, undefined],
    [{ logprobs: false, top_logprobs: 0 }, undefined],
    [{ logprobs: true }, 0],
    [{ logprobs: true, top_logprobs: null }, 0],
    [{ logprobs: true, top_logprobs: 20 }, 20],
  ])('are asked for by %j: %j', async (fields, count) => {
    expect((await askedOf(CHAT, chatOf(fields))).request.logprobs).toBe(count)
  })

  it('have no place in a message', async () => {
    for (const fields of [{ logprobs: true }, { top_logprobs: 2 }]) {
      const response = await send(scriptedHost(), MESSAGES, { body: messageOf(fields) })
      expect((await errorOf(response, 400)).param).toBe(Object.keys(fields)[0])
    }
  })
})

const refusing = (param: string, message = `${param} is wrong.`) => {
  const error = new InoriginError('invalid_request', message, {
    param,
    code: 'unsupported_schema',
    details: { a: 1 },
  })
  return scriptedHost({
    overrides: { generate: () => Promise.reject(error), countTokens: () => Promise.reject(error) },
  })
}

describe('a refusal of the host names the field', () => {
  const inChat = { type: 'json_schema', json_schema: { name: 'x', schema } }
  it.each([
    ['messages', 'messages', {}],
    ['model', 'model', {}],
    ['tool_choice', 'tool_choice', {}],
    ['tools[1].name', 'tools[1].function.name', {}],
    [
      'tools[12].parameters.properties.x.multipleOf',
      'tools[12].function.parameters.properties.x.multipleOf',
      {},
    ],
    ['format', 'response_format', {}],
    [
      'format.grammar',
      'response_format.grammar',
      { response_format: { type: 'grammar', grammar: 'x' } },
    ],
    [
      'format.schema.properties.format',
      'response_format.json_schema.schema.properties.format',
      { response_format: inChat },
    ],
    [
      'format.schema.not',
      'response_format.schema.not',
      { response_format: { type: 'json_object', schema } },
    ],
  ])('of a chat completion: %s is %s', async (param, named, fields) => {
    const error = await errorOf(await send(refusing(param), CHAT, { body: chatOf(fields) }), 400)
    expect(error).toMatchObject({
      param: named,
      message: `${named} is wrong.`,
      code: 'unsupported_schema',
      details: { a: 1 },
    })
  })

  it.each([
    ['messages', 'messages', {}],
    ['tools[0].name', 'tools[0].name', {}],
    ['tools[0].parameters.not', 'tools[0].input_schema.not', {}],
    [
      'format.schema.not',
      'output_config.format.schema.not',
      { output_config: { format: { type: 'json_schema', schema } } },
    ],
    [
      'format.schema.not',
      'output_format.schema.not',
      { output_format: { type: 'json_schema', schema } },
    ],
  ])('of a message: %s is %s', async (param, named, fields) => {
    for (const path of [MESSAGES, `${MESSAGES}/count_tokens`]) {
      const error = await errorOf(
        await send(refusing(param), path, { body: messageOf(fields) }),
        400,
      )
      expect(error).toMatchObject({ param: named, message: `${named} is wrong.` })
    }
  })

  it('also when it comes late', async () => {
    const script = [
      new InoriginError('invalid_request', 'tools[0].parameters.not is wrong.', {
        param: 'tools[0].parameters.not',
      }),
    ]
    const host = scriptedHost({ script })
    const chat = await send(host, CHAT, { body: chatOf({ stream: true }) })
    expect(checkChatStream(await chat.text()).error).toMatchObject({
      param: 'tools[0].function.parameters.not',
      message: 'tools[0].function.parameters.not is wrong.',
    })
    const message = await send(host, MESSAGES, { body: messageOf({ stream: true }) })
    expect(checkMessageStream(await message.text()).error).toMatchObject({
      message: 'tools[0].input_schema.not is wrong.',
    })
  })
})
