import { describe, expect, test } from 'vitest'
import type { Constraint } from '../../../src/engine/constraint.ts'
import type { GenerationRequest } from '../../../src/types/index.ts'
import {
  createReasoningSplitter,
  detectReasoningTags,
  findReasoningState,
  hasReasoningSwitch,
} from '../../../src/generation/reasoning.ts'
import { collect, scripted, sum, use } from './scripted.ts'

const QWEN = "{{ '<think></think>' }}{% if enable_thinking is false %}"
const R1 = "{{ content.split('</think>')[-1] }}{{ '<think>\\n' }}"
const THINK = { open: '<think>', close: '</think>' }

test.each([
  ['{{ "<think>" }}{{ "</think>" }}', '<think>'],
  ["content.split('</think>')", '<think>'],
  ['[THINK]x[/THINK]', '[THINK]'],
  ['<|START_THINKING|><|END_THINKING|>', '<|START_THINKING|>'],
  ["'</seed:think>'", '<seed:think>'],
  ['<reasoning></reasoning>', '<reasoning>'],
  ['{{ messages }}', undefined],
])('%s: the marks of reasoning are found', (template, open) => {
  expect(detectReasoningTags(template)?.open).toBe(open)
})

test('without a template the most common marks are looked for', () => {
  expect(detectReasoningTags(null)).toEqual(THINK)
})

test.each([
  ['{% if enable_thinking is defined %}', true],
  ['{%- if thinking %}', true],
  ["{{ message.thinking }}{% if message['thinking'] or message.thinking %}", false],
  ['Answer without thinking.', false],
  [R1, false],
])('%s: has a switch: %s', (template, switched) => {
  expect(hasReasoningSwitch(template)).toBe(switched)
})

test.each([
  ['<|assistant|>\n', 'none'],
  ['<|assistant|>\n<think>\n', 'open'],
  ['<|assistant|>\n<think>\n\n</think>\n\n', 'closed'],
  ['<|assistant|></think>', 'closed'],
] as const)('%j leaves the block %s', (opening, state) => {
  expect(findReasoningState(opening, THINK)).toBe(state)
})

describe('reasoning and text', () => {
  const cases: [written: string, inside: boolean, reasoning: string, text: string][] = [
    ['<think>\nHm. 1 < 2.\n</think>\n\nYes.', false, 'Hm. 1 < 2.', 'Yes.'],
    ['Hm.\n\nSo </thin yes.</think>Yes', true, 'Hm.\n\nSo </thin yes.', 'Yes'],
    ['\n<think></think>\n\nYes.\n', false, '', 'Yes.\n'],
    ['<think>\n\n</think>\n\n  Yes', false, '', 'Yes'],
    ['Yes, <think>no</think>', false, '', 'Yes, <think>no</think>'],
    [' <thanks>', false, '', ' <thanks>'],
    ['<thin', false, '', '<thin'],
    ['  ', false, '', '  '],
    ['never ends </thi', true, 'never ends </thi', ''],
    ['<think>a</think>b</think>c<think>d', false, 'a', 'b</think>c<think>d'],
    ['', true, '', ''],
  ]
  test.each(cases)('%j', (written, inside, reasoning, text) => {
    const read = (pieces: readonly string[]): { reasoning: string; text: string } => {
      const splitter = createReasoningSplitter(THINK, inside)
      const parts = [...pieces.map((piece) => splitter.push(piece)), splitter.end()]
      return {
        reasoning: parts.map((part) => part.reasoning).join(''),
        text: parts.map((part) => part.text).join(''),
      }
    }
    expect(read([written])).toEqual({ reasoning, text })
    expect(read(written.split(''))).toEqual({ reasoning, text })
    for (let at = 0; at <= written.length; at += 1) {
      expect(read([written.slice(0, at), written.slice(at)])).toEqual({ reasoning, text })
    }
  })

  test('are told at once unless a mark may follow', () => {
    const splitter = createReasoningSplitter(THINK, false)
    expect(splitter.push('<thi')).toEqual({ reasoning: '', text: '' })
    expect(splitter.push('nk>\nWell')).toEqual({ reasoning: 'Well', text: '' })
    expect(splitter.isOpen).toBe(true)
    expect(splitter.push(', a \n<')).toEqual({ reasoning: ', a', text: '' })
    expect(splitter.push('b')).toEqual({ reasoning: ' \n<b', text: '' })
    expect(splitter.push('</think>c')).toEqual({ reasoning: '', text: 'c' })
    expect(splitter.isOpen).toBe(false)
  })
})

test('reasoning is told and counted on its own', async () => {
  const engine = scripted(['<think>', '\n', 'Hm', '.', '\n', '</think>', '\n\n', 'Yes'], {
    template: QWEN,
  })
  const events = await collect(engine)
  expect(sum(events)).toMatchObject({ reasoning: 'Hm.', text: 'Yes', reason: 'stop' })
  expect(events.at(-1)).toMatchObject({ usage: { completionTokens: 9, reasoningTokens: 6 } })
  expect(engine.conversations[0]).not.toHaveProperty('thinking')
})

test('a model that never stops reasoning ends by its limit, without text', async () => {
  const engine = scripted(['Hm', ' hm'], { template: R1, opening: '<think>\n', ending: 'length' })
  const events = await collect(engine)
  expect(sum(events)).toMatchObject({ reasoning: 'Hm hm', text: '', reason: 'length' })
})

test('marks that a template does not know are text', async () => {
  const events = await collect(scripted(['<think>a</think>b'], { template: '' }))
  expect(sum(events)).toMatchObject({ reasoning: '', text: '<think>a</think>b' })
})

describe('a budget', () => {
  const pieces = ['<think>', 'a', 'b', 'c', 'd', 'e', '</think>', 'Yes']

  test('closes the block when it is used up, and the answer goes on', async () => {
    const engine = scripted(pieces, { template: QWEN, after: ['So', ' yes'] })
    const events = await collect(engine, { reasoningBudget: 3 })
    expect(engine.steered).toEqual([{ append: '\n</think>\n\n' }])
    expect(engine.conversations[0]).toMatchObject({ thinking: true })
    expect(sum(events)).toMatchObject({ reasoning: 'ab', text: 'So yes', reason: 'stop' })
    // As many as the budget: what closes it is not thought.
    expect(events.at(-1)).toMatchObject({ usage: { reasoningTokens: 3 } })
  })

  test('that is not used up changes nothing', async () => {
    const engine = scripted(pieces, { template: QWEN })
    expect(sum(await collect(engine, { reasoningBudget: 9 }))).toMatchObject({
      reasoning: 'abcde',
      text: 'Yes',
    })
    expect(engine.steered).toEqual([])
  })

  test('leaves half of the context at least', async () => {
    const engine = scripted(pieces, { template: QWEN, contextWindow: 8 })
    expect(sum(await collect(engine, { reasoningBudget: Infinity })).reasoning).toBe('abc')
  })

  test('is without effect on a model that does not reason, whatever its template knows', async () => {
    const instruct = scripted(['Yes'], { template: R1 })
    const asking = { ways: { reasons: false } }
    expect(sum(await collect(instruct, { reasoningBudget: 0 }, asking)).text).toBe('Yes')
    expect(instruct.asked[0]).not.toHaveProperty('constraint')
  })

  test('is without effect on a model whose template knows no reasoning', async () => {
    const engine = scripted(['Yes'], { template: '' })
    expect(sum(await collect(engine, { reasoningBudget: 2 })).text).toBe('Yes')
    expect(engine.conversations[0]).not.toHaveProperty('thinking')
    expect(engine.asked[0]).not.toHaveProperty('constraint')
  })
})

describe('no reasoning at all', () => {
  const off = { reasoningBudget: 0 } satisfies Partial<GenerationRequest>
  const text: Constraint = { type: 'text' }

  test('is asked of the template where it has a switch', async () => {
    const engine = scripted(['Yes'], { template: QWEN, opening: '<think>\n\n</think>\n\n' })
    await collect(engine, off)
    expect(engine.conversations[0]).toMatchObject({ thinking: false })
    expect(engine.asked[0]).not.toHaveProperty('constraint')
  })

  test.each([
    ['', '<think>\n\n</think>\n\n'],
    ['<think>\n', '\n</think>\n\n'],
  ])(
    'is an empty block behind %j otherwise, which the model is made to write',
    async (opening, block) => {
      const engine = scripted([block, 'Yes'], { template: R1, opening })
      const events = await collect(engine, off)
      expect(engine.asked[0]?.constraint).toEqual({
        type: 'sequence',
        parts: [{ type: 'constant', text: block }, text],
      })
      expect(engine.steered).toEqual([{ constraint: null }])
      expect(sum(events)).toMatchObject({ reasoning: '', text: 'Yes' })
      expect(events.at(-1)).toMatchObject({ usage: { reasoningTokens: 0 } })
    },
  )

  test('is left to the model where it cannot be forced, and closed as soon as it is opened', async () => {
    const refuse = (): Error => new Error('no constraints')
    const engine = scripted(['<think>', 'Hm'], { template: R1, refuse, after: ['Yes'] })
    expect(sum(await collect(engine, off))).toMatchObject({ reasoning: '', text: 'Yes' })
    expect(engine.asked[0]).not.toHaveProperty('constraint')
    expect(engine.steered).toEqual([{ append: '\n</think>\n\n' }])
  })

  test('is kept where the answer is constrained', async () => {
    const engine = scripted(['<think>\n\n</think>\n\n', '{}'], { template: R1 })
    await collect(engine, { ...off, format: { type: 'json_object' } })
    expect(engine.asked[0]?.constraint).toMatchObject({
      parts: [{ type: 'constant' }, { type: 'json', schema: { type: 'object' } }],
    })
    expect(engine.steered).toEqual([])
  })

  test('is not asked for in the middle of the block', async () => {
    const engine = scripted(['<think>', '\n\n', '</think>\n', '\n', 'Yes'], { template: R1 })
    expect(sum(await collect(engine, off))).toMatchObject({ reasoning: '', text: 'Yes' })
    expect(engine.steered).toEqual([{ constraint: null }])
  })

  test('closes a block that the model opens all the same', async () => {
    const engine = scripted(['<think>', 'Hm'], { template: QWEN, after: ['Yes'] })
    expect(sum(await collect(engine, off))).toMatchObject({ reasoning: '', text: 'Yes' })
    expect(engine.steered).toEqual([{ append: '\n</think>\n\n' }])
  })
})

describe('a constraint holds for what follows reasoning', () => {
  const answer: Constraint = { type: 'json', schema: { type: 'object' } }
  const space: Constraint = { type: 'pattern', pattern: '\\n{0,2}' }
  const reasoned = (begin: string): Constraint => ({
    type: 'sequence',
    parts: [{ type: 'tagged', begin, content: { type: 'text' }, end: '</think>' }, space, answer],
  })

  test('that the prompt has begun', async () => {
    const engine = scripted([], { template: R1, opening: '<think>\n' })
    await collect(engine, { format: { type: 'json_object' } })
    expect(engine.asked[0]?.constraint).toEqual(reasoned(''))
  })

  test('or that the model may begin', async () => {
    const engine = scripted([], { template: QWEN })
    await collect(engine, { format: { type: 'json_object' } })
    expect(engine.asked[0]?.constraint).toEqual({
      type: 'choice',
      parts: [reasoned('<think>'), answer],
    })
  })

  test('and calls are found there alone', async () => {
    const call = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
    const engine = scripted([`<think>${call}`, '</think>', `\n\n${call}`], { template: QWEN })
    const told = sum(await collect(engine, { tools: use({ choice: 'required' }) }))
    expect(told).toMatchObject({ reasoning: call, text: '', calls: [{ name: 'get_time' }] })
  })
})
