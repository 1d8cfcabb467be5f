/** Variables of chat templates that requests state, in the conversation that the engine gets. */
import { expect, test } from 'vitest'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { GenerationRequest } from '../../../src/types/index.ts'
import { request, scripted } from './scripted.ts'

async function plan(template: string | null, fields: Partial<GenerationRequest>) {
  const engine = scripted([], { template })
  const { unread } = await planGeneration(engine, request(fields))
  const [conversation] = engine.conversations
  return { unread, variables: conversation?.variables, thinking: conversation?.thinking }
}

const EFFORT = "Reasoning: {{ reasoning_effort or 'medium' }}"

test.each([
  ['low', EFFORT, 'low'],
  ['none', EFFORT, 'low'],
  ['minimal', EFFORT, 'low'],
  ['max', EFFORT, 'high'],
  ['max', "{% if reasoning_effort == 'max' %}{% endif %}", 'max'],
  ['none', '{% if reasoning_effort == "none" %}{% endif %}', 'none'],
] as const)('the effort %s reaches %j as %s', async (reasoningEffort, template, expected) => {
  const { variables } = await plan(template, { reasoningEffort })
  expect(variables).toEqual({ reasoning_effort: expected })
})

test('a template gets only the variables that it reads', async () => {
  const fields = { reasoningEffort: 'low', reasoningBudget: 256 } as const
  expect(await plan('{{ x.reasoning_effort }} thinking_budget', fields)).toEqual({ unread: [] })
  expect(await plan('{{ thinking_budget }}', fields)).toMatchObject({
    variables: { thinking_budget: 256 },
  })
  expect(await plan('{{ thinking_budget }}', { reasoningBudget: Infinity })).toEqual({ unread: [] })
})

test('a template without marks of reasoning can have a switch for it', async () => {
  const template = '{% if enable_thinking %}Think.{% endif %}'
  expect(await plan(template, { reasoningBudget: 64 })).toMatchObject({ thinking: true })
  expect(await plan(template, { reasoningBudget: 0 })).toMatchObject({ thinking: false })
  expect(await plan(template, {})).toEqual({ unread: [] })
})

test('variables of the request win, and those that are not read are reported', async () => {
  const templateVariables = { reasoning_effort: 'extreme', mode: [1] }
  const fields = { reasoningEffort: 'low', templateVariables } as const
  expect(await plan(EFFORT, fields)).toMatchObject({
    variables: templateVariables,
    unread: ['templateVariables.mode'],
  })
})
