/** How much may be thought, and what is told of a field that had no effect. */
import { describe, expect, it } from 'vitest'
import { chatOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const bodyOf = (path: string, fields: object) =>
  path === CHAT ? chatOf(fields) : messageOf({ max_tokens: 9999, ...fields })

describe.each([CHAT, MESSAGES])('the budget of thought in %s', (path) => {
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
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, 0],
    [{ thinking: { type: 'enabled', budget_tokens: 1234 } }, 1234],
    [{ thinking: { type: 'enabled', budget_tokens: 1 }, output_config: { effort: 'high' } }, 1],
    [{ thinking: { type: 'adaptive' } }, 1024],
    [{ thinking: { type: 'adaptive', display: 'omitted' } }, 1024],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }, 4096],
  ])('is of %j %j', async (fields, budget) => {
    const { request, ignored } = await askedOf(path, bodyOf(path, fields))
    expect(request.reasoningBudget).toBe(budget)
    expect(ignored).toBeNull()
  })

  it.each([
    [{ reasoning_effort: 'high' }, 'reasoning_effort'],
    [{ thinking: { type: 'adaptive' } }, 'thinking'],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }, 'thinking, output_config.effort'],
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
