/** How much may be thought, and what is told of a field that had no effect. */
import { describe, expect, it } from 'vitest'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'
const bodyOf = (path: string, fields: object) => {
  if (path === RESPONSES) return { model: '@acme/tiny', input: 'Hi', ...fields }
  return path === CHAT ? chatOf(fields) : messageOf({ max_tokens: 9999, ...fields })
}

describe.each([CHAT, MESSAGES, RESPONSES])('the budget of thought in %s', (path) => {
  it.each([
    [{}, undefined],
    [{ reasoning_effort: null, thinking: null, output_config: { effort: null } }, undefined],
    [{ reasoning_effort: 'none' }, 0],
    [{ reasoning_effort: 'minimal' }, 64],
    [{ reasoning_effort: 'low' }, 256],
    [{ reasoning_effort: 'medium' }, 1024],
    [{ reasoning_effort: 'high' }, 4096],
    [{ reasoning_effort: 'xhigh' }, Infinity],
    [{ reasoning_effort: 'max' }, Infinity],
    [{ output_config: { effort: 'low' } }, 256],
    [{ output_config: { effort: 'max' } }, Infinity],
    [{ thinking: { type: 'disabled' } }, 0],
    [{ thinking: { type: 'disabled' }, reasoning_effort: 'none' }, 0],
    [{ thinking: { type: 'enabled', budget_tokens: 1234 } }, 1234],
    [{ thinking: { type: 'enabled', budget_tokens: 256 }, output_config: { effort: 'low' } }, 256],
    [{ thinking: { type: 'adaptive' } }, 1024],
    [{ thinking: { type: 'adaptive', display: 'omitted' } }, 1024],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }, 4096],
  ])('is of %j %j', async (fields, budget) => {
    const { request, ignored } = await askedOf(path, bodyOf(path, fields))
    expect(request.reasoningBudget).toBe(budget)
    expect(ignored).toBeNull()
  })

  it.each([
    [
      { thinking: { type: 'disabled' }, output_config: { effort: 'high' } },
      0,
      'output_config.effort',
    ],
    [
      { thinking: { type: 'enabled', budget_tokens: 9 }, reasoning_effort: 'high' },
      9,
      'reasoning_effort',
    ],
    [{ reasoning_effort: 'low', output_config: { effort: 'high' } }, 256, 'output_config.effort'],
  ])('is not of an effort that disagrees, which is told: %j %j', async (fields, budget, told) => {
    const { request, ignored } = await askedOf(path, bodyOf(path, fields))
    expect(request.reasoningBudget).toBe(budget)
    expect(ignored).toBe(told)
  })

  it.each([
    [{ reasoning_effort: 'high' }, 'reasoning_effort'],
    [{ thinking: { type: 'adaptive' } }, 'thinking'],
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      'thinking, output_config.effort',
    ],
  ])('is told to have had no effect: %j', async (fields, told) => {
    const host = scriptedHost({ ignored: ['reasoningBudget'] })
    const response = await send(host, path, { body: bodyOf(path, fields) })
    expect(response.headers.get('x-inorigin-ignored')).toBe(told)
  })
})

it('need not be below a limit that is not given', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1e6 }
  expect((await askedOf(CHAT, chatOf({ thinking }))).request.reasoningBudget).toBe(1e6)
})

it.each([
  ['none', 0],
  ['minimal', 64],
  ['low', 256],
  ['medium', 1024],
  ['high', 4096],
  ['xhigh', Infinity],
  ['max', Infinity],
])('has a field of its own in responses: %s', async (effort, budget) => {
  const { request, ignored } = await askedOf(
    RESPONSES,
    bodyOf(RESPONSES, { reasoning: { effort } }),
  )
  expect([request.reasoningBudget, ignored]).toEqual([budget, null])
  const host = scriptedHost({ ignored: ['reasoningBudget'] })
  const sent = await send(host, RESPONSES, { body: bodyOf(RESPONSES, { reasoning: { effort } }) })
  expect(sent.headers.get('x-inorigin-ignored')).toBe('reasoning.effort')
})

describe('a budget that cannot be', () => {
  const limits = {
    [CHAT]: 'max_completion_tokens',
    [MESSAGES]: 'max_tokens',
    [RESPONSES]: 'max_output_tokens',
  }

  it.each(Object.entries(limits))('of %s is refused by name', async (path, limit) => {
    for (const [budget_tokens, status] of [
      [99, 200],
      [100, 400],
      [101, 400],
      [0, 400],
      [-1, 400],
      [1.5, 400],
      ['9', 400],
      [null, 400],
    ]) {
      const thinking = { type: 'enabled', budget_tokens }
      const sent = await send(scriptedHost(), path, {
        body: bodyOf(path, { thinking, [limit]: 100 }),
      })
      if (status === 200) expect(sent.status).toBe(200)
      else expect((await errorOf(sent, 400)).param).toBe('thinking.budget_tokens')
    }
  })

  it.each([
    [CHAT, { reasoning_effort: 'ultra' }, 'reasoning_effort'],
    [CHAT, { reasoning_effort: 5 }, 'reasoning_effort'],
    [MESSAGES, { output_config: { effort: 'minimal' } }, 'output_config.effort'],
    [MESSAGES, { output_config: { effort: 'none' } }, 'output_config.effort'],
    [MESSAGES, { thinking: { type: 'sometimes' } }, 'thinking.type'],
    [MESSAGES, { thinking: { type: 'enabled' } }, 'thinking.budget_tokens'],
    [MESSAGES, { thinking: {} }, 'thinking.type'],
    [MESSAGES, { thinking: true }, 'thinking'],
    [RESPONSES, { reasoning: { effort: 'ultra' } }, 'reasoning.effort'],
  ])('%s %j', async (path, fields, param) => {
    const sent = await send(scriptedHost(), path, { body: bodyOf(path, fields) })
    expect((await errorOf(sent, 400)).param).toBe(param)
  })
})
