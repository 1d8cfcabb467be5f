import { describe, expect, test } from 'vitest'
import type { Constraint } from '../../../src/constraint/index.ts'
import {
  ReasoningSplitter,
  detectReasoningTags,
  findReasoningState,
  hasReasoningSwitch,
} from '../../../src/generation/reasoning.ts'
import type { GenerationRequest } from '../../../src/types/index.ts'
import { collect, type Script, scripted, sum, use } from './scripted.ts'

const QWEN = "{{ '<think></think>' }}{% if enable_thinking is false %}"
const R1 = "{{ content.split('</think>')[-1] }}{{ '<think>\\n' }}"
const THINK = { open: '<think>', close: '</think>' }
const CLOSE = { append: '\n</think>\n\n' }

test.each([
  ['{{ "<think>" }}{{ "</think>" }}', '<think>'],
  ["content.split('</think>')", '<think>'],
  ['[THINK]x[/THINK]', '[THINK]'],
  ['<|START_THINKING|><|END_THINKING|>', '<|START_THINKING|>'],
  ["'</seed:think>'", '<seed:think>'],
  ['<reasoning></reasoning>', '<reasoning>'],
  ['{{ messages }}', undefined],
  [null, '<think>'],
])('The template %s has the reasoning tag %s', (template, open) => {
  expect(detectReasoningTags(template)?.open).toBe(open)
})

test.each([
  ['{% if enable_thinking is defined %}', true],
  ['{%- if thinking %}', true],
  ["{{ message.thinking }}{% if message['thinking'] or message.thinking %}", false],
  ['Answer without thinking.', false],
  [R1, false],
])('The template %s has a switch: %s', (template, switched) => {
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

describe('Reasoning and text', () => {
  test.each<[written: string, inside: boolean, reasoning: string, text: string]>([
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
  ])('of %j are split, in any pieces', (written, inside, reasoning, text) => {
    const read = (pieces: readonly string[]): [string, string] => {
      const splitter = new ReasoningSplitter(THINK, inside ? 'reasoning' : 'nothing')
      const parts = [...pieces.map((piece) => splitter.push(piece)), splitter.end()]
      return [parts.map((part) => part.reasoning).join(''), parts.map((part) => part.text).join('')]
    }
    expect(read(written.split(''))).toEqual([reasoning, text])
    for (let at = 0; at <= written.length; at += 1) {
      expect(read([written.slice(0, at), written.slice(at)])).toEqual([reasoning, text])
    }
  })

  test('are sent at once unless a tag may follow', () => {
    const splitter = new ReasoningSplitter(THINK)
    const push = (piece: string) => {
      const { reasoning, text } = splitter.push(piece)
      return [reasoning, text, splitter.isOpen]
    }
    expect(push('<thi').slice(0, 2)).toEqual(['', ''])
    expect(push('nk>\nWell')).toEqual(['Well', '', true])
    expect(push(', a \n<')).toEqual([', a', '', true])
    expect(push('b')).toEqual([' \n<b', '', true])
    expect(push('</think>c')).toEqual(['', 'c', false])
  })
})

/** Runs a request, and returns the engine with the content and the usage of the answer. */
async function run(
  pieces: string[],
  script: Script,
  fields: Partial<GenerationRequest> = {},
  options: Parameters<typeof collect>[2] = {},
) {
  const engine = scripted(pieces, script)
  const events = await collect(engine, fields, options)
  const last = events.at(-1)
  return { engine, ...sum(events), usage: last?.type === 'finish' ? last.usage : undefined }
}

test('Reasoning has events and a count of its own', async () => {
  const pieces = ['<think>', '\n', 'Hm', '.', '\n', '</think>', '\n\n', 'Yes']
  const { engine, ...answer } = await run(pieces, { template: QWEN })
  expect(answer).toMatchObject({ reasoning: 'Hm.', text: 'Yes', reason: 'stop' })
  expect(answer).toMatchObject({ usage: { completionTokens: 9, reasoningTokens: 6 } })
  expect(engine.conversations[0]).not.toHaveProperty('thinking')
})

test.each<[string, string[], Script, object]>([
  [
    'A model that never stops reasoning ends at its limit, without text',
    ['Hm', ' hm'],
    { template: R1, opening: '<think>\n', ending: 'length' },
    { reasoning: 'Hm hm', text: '', reason: 'length' },
  ],
  [
    'Tags that a template does not have are text',
    ['<think>a</think>b'],
    { template: '' },
    { reasoning: '', text: '<think>a</think>b' },
  ],
])('%s', async (_, pieces, script, expected) => {
  expect(await run(pieces, script)).toMatchObject(expected)
})

describe('A budget', () => {
  const pieces = ['<think>', 'a', 'b', 'c', 'd', 'e', '</think>', 'Yes']

  test('closes the block when it is used up, and the answer continues', async () => {
    const script = { template: QWEN, after: ['So', ' yes'] }
    const { engine, ...answer } = await run(pieces, script, { reasoningBudget: 3 })
    expect(engine.steered).toEqual([CLOSE])
    expect(engine.conversations[0]).toMatchObject({ thinking: true })
    // The tokens that close the block do not count.
    const usage = { reasoningTokens: 3 }
    expect(answer).toMatchObject({ reasoning: 'ab', text: 'So yes', reason: 'stop', usage })
  })

  test('that is not used up changes nothing', async () => {
    const { engine, ...answer } = await run(pieces, { template: QWEN }, { reasoningBudget: 9 })
    expect(answer).toMatchObject({ reasoning: 'abcde', text: 'Yes' })
    expect(engine.steered).toEqual([])
  })

  test('leaves at least half of the context', async () => {
    const script = { template: QWEN, contextWindow: 8 }
    expect(await run(pieces, script, { reasoningBudget: Infinity })).toMatchObject({
      reasoning: 'abc',
    })
  })

  test.each([
    ['model does not reason', 0, R1, { ways: { reasons: false } }],
    ['template has no reasoning', 2, '', {}],
  ])('has no effect if the %s', async (_, reasoningBudget, template, options) => {
    const { engine, text } = await run(['Yes'], { template }, { reasoningBudget }, options)
    expect(text).toBe('Yes')
    expect(engine.conversations[0]).not.toHaveProperty('thinking')
    expect(engine.asked[0]).not.toHaveProperty('constraint')
  })
})

describe('No reasoning', () => {
  const off = { reasoningBudget: 0 } satisfies Partial<GenerationRequest>
  const text: Constraint = { type: 'text' }

  test('is requested by the switch of the template', async () => {
    const opening = '<think>\n\n</think>\n\n'
    const { engine } = await run(['Yes'], { template: QWEN, opening }, off)
    expect(engine.conversations[0]).toMatchObject({ thinking: false })
    expect(engine.asked[0]).not.toHaveProperty('constraint')
  })

  test.each([
    ['', '<think>\n\n</think>\n\n'],
    ['<think>\n', '\n</think>\n\n'],
  ])('without a switch is a forced empty block after %j', async (opening, block) => {
    const { engine, ...answer } = await run([block, 'Yes'], { template: R1, opening }, off)
    const parts = [{ type: 'constant', text: block }, text]
    expect(engine.asked[0]?.constraint).toEqual({ type: 'sequence', parts })
    expect(engine.steered).toEqual([{ constraint: null }])
    expect(answer).toMatchObject({ reasoning: '', text: 'Yes', usage: { reasoningTokens: 0 } })
  })

  const refuse = (): Error => new Error('no constraints')
  test.each<[string, string[], Script, unknown]>([
    [
      'that cannot be forced closes the block that the model opens',
      ['<think>', 'Hm'],
      { template: R1, refuse, after: ['Yes'] },
      CLOSE,
    ],
    [
      'closes a block that the model opens despite its switch',
      ['<think>', 'Hm'],
      { template: QWEN, after: ['Yes'] },
      CLOSE,
    ],
    [
      'lifts the constraint after the block, not within it',
      ['<think>', '\n\n', '</think>\n', '\n', 'Yes'],
      { template: R1 },
      { constraint: null },
    ],
  ])('%s', async (_, pieces, script, steer) => {
    const { engine, ...answer } = await run(pieces, script, off)
    expect(answer).toMatchObject({ reasoning: '', text: 'Yes' })
    expect(engine.steered).toEqual([steer])
    expect('constraint' in (engine.asked[0] ?? {})).toBe(steer !== CLOSE)
  })

  test('keeps the constraint of the answer', async () => {
    const pieces = ['<think>\n\n</think>\n\n', '{}']
    const fields = { ...off, format: { type: 'json_object' } } as const
    const { engine } = await run(pieces, { template: R1 }, fields)
    expect(engine.asked[0]?.constraint).toMatchObject({
      parts: [{ type: 'constant' }, { type: 'json', schema: { type: 'object' } }],
    })
    expect(engine.steered).toEqual([])
  })
})

describe('A constraint applies after reasoning', () => {
  const answer: Constraint = { type: 'json', schema: { type: 'object' } }
  const space: Constraint = { type: 'pattern', pattern: '\\n{0,2}' }
  const reasoned = (begin: string): Constraint => ({
    type: 'sequence',
    parts: [{ type: 'tagged', begin, content: { type: 'text' }, end: '</think>' }, space, answer],
  })

  test.each<[string, Script, Constraint]>([
    ['that the prompt began', { template: R1, opening: '<think>\n' }, reasoned('')],
    [
      'that the model may begin',
      { template: QWEN },
      { type: 'choice', parts: [reasoned('<think>'), answer] },
    ],
  ])('%s', async (_, script, constraint) => {
    const { engine } = await run([], script, { format: { type: 'json_object' } })
    expect(engine.asked[0]?.constraint).toEqual(constraint)
  })

  test('and calls are found only there', async () => {
    const call = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
    const pieces = [`<think>${call}`, '</think>', `\n\n${call}`]
    expect(
      await run(pieces, { template: QWEN }, { tools: use({ choice: 'required' }) }),
    ).toMatchObject({ reasoning: call, text: '', calls: [{ name: 'get_time' }] })
  })
})
