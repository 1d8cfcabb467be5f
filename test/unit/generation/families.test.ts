/** Answers as models of the families write them, from the first mark to the last, in any pieces. */
import { describe, expect, test } from 'vitest'
import { planGeneration } from '../../../src/generation/plan.ts'
import { createConstraintCompiler } from '../../../src/constraint/index.ts'
import { takes, WASM } from '../../support/random-constraints.ts'
import { smallVocabulary } from '../../support/vocabulary.ts'
import { collect, request, type Script, scripted, sum, use } from './scripted.ts'

interface Expected {
  reasoning?: string
  text?: string
  calls?: Readonly<Record<string, unknown>>
}

interface Family {
  script: Script
  /** Tokens that have no text unless the plan asks for it. */
  special: readonly string[]
  answers: readonly [written: string, expected: Expected][]
}

const PARIS = { get_weather: { city: 'Paris' } }
const CALL = '{"city": "Paris"}'

/** Small templates with the marks by which the families are known. */
const FAMILIES: Readonly<Record<string, Family>> = {
  'gpt-oss': {
    script: {
      template: "{{ tools }}<|channel|>analysis<|message|>{{ 'functions.' }}",
      opening: '<|start|>assistant',
    },
    special: ['<|channel|>', '<|message|>', '<|start|>', '<|end|>', '<|constrain|>'],
    answers: [
      [
        '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.',
        { reasoning: 'Hm.', text: 'Yes.' },
      ],
      ['<|channel|>final<|message|>Yes.<|end|>', { text: 'Yes.' }],
      [
        `<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${CALL}`,
        { reasoning: 'Hm.', calls: PARIS },
      ],
      [` to=functions.get_weather<|channel|>commentary json<|message|>${CALL}`, { calls: PARIS }],
      [
        `<|channel|>commentary<|message|>Looking.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${CALL}`,
        { text: 'Looking.', calls: PARIS },
      ],
      // Text before a call, and reasoning between them.
      [
        `<|channel|>commentary<|message|>Looking.<|end|><|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary<|message|>${CALL}`,
        { text: 'Looking.', reasoning: 'Hm.', calls: PARIS },
      ],
      ['No mark at all', { text: 'No mark at all' }],
    ],
  },
  'Gemma 4': {
    script: { template: '{{ tools }}<|channel>thought\n<channel|><|tool_call>call:<tool_call|>' },
    special: ['<|channel>', '<channel|>', '<|tool_call>', '<tool_call|>', '<|"|>'],
    answers: [
      ['<|channel>thought\nHm.\n<channel|>Yes.', { reasoning: 'Hm.', text: 'Yes.' }],
      [
        '<|channel>thought\nHm.\n<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
        { reasoning: 'Hm.', calls: PARIS },
      ],
    ],
  },
  'Command R7B': {
    script: {
      template: '{{ tools }}<|START_THINKING|><|START_ACTION|>"tool_name"<|START_RESPONSE|>',
    },
    special: ['THINKING', 'ACTION', 'RESPONSE'].flatMap((mark) => [
      `<|START_${mark}|>`,
      `<|END_${mark}|>`,
    ]),
    answers: [
      ['<|START_RESPONSE|>Yes.<|END_RESPONSE|>', { text: 'Yes.' }],
      [
        '<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>',
        { reasoning: 'Hm.', text: 'Yes.' },
      ],
      [
        `<|START_THINKING|>Hm.<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": ${CALL}}\n]<|END_ACTION|>`,
        { reasoning: 'Hm.', calls: PARIS },
      ],
    ],
  },
  'Functionary 3.2': {
    script: { template: '{{ tools }}>>>${recipient} >>>all', opening: '>>>' },
    special: [],
    answers: [
      [`all\nLooking.>>>get_weather\n${CALL}`, { text: 'Looking.', calls: PARIS }],
      [`get_weather\n${CALL}>>>get_time\n{}`, { calls: { ...PARIS, get_time: {} } }],
      ['all the time', { text: 'all the time' }],
      ['get_weather is a tool', { text: 'get_weather is a tool' }],
    ],
  },
  'Seed-OSS': {
    script: { template: '{{ tools }}</seed:think><seed:tool_call><function=<parameter=' },
    special: [],
    answers: [
      [
        '<seed:think>Hm.</seed:think><seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>',
        { reasoning: 'Hm.', calls: PARIS },
      ],
    ],
  },
}

const cases = Object.entries(FAMILIES).flatMap(([name, { answers, ...family }]) =>
  answers.map(([written, expected]) => ({ name, written, expected, ...family })),
)

describe.each(cases)('$name: $written', ({ written, expected, script, special }) => {
  const fields = { tools: use() }

  test('is divided into reasoning, text and calls, however it is split', async () => {
    const { reasoning = '', text = '', calls = {} } = expected
    const whole = { reasoning, text, calls: Object.entries(calls) }
    const cuts = Array.from({ length: written.length }, (_, at) => [
      written.slice(0, at),
      written.slice(at),
    ])
    for (const pieces of [written.split(''), ...cuts]) {
      const answer = sum(await collect(scripted(pieces, script), fields))
      const shown = {
        reasoning: answer.reasoning,
        text: answer.text.trim(),
        calls: answer.calls.map(({ name, arguments: json }) => [name, JSON.parse(json)]),
      }
      expect(shown, pieces[0]).toEqual(whole)
    }
  })

  test('has its marks in the text', async () => {
    const { visible } = await planGeneration(scripted([], script), request(fields))
    expect(special.filter((token) => written.includes(token) && !visible.includes(token))).toEqual(
      [],
    )
  })
})

test('A format of the answer stands between the marks of text', async () => {
  const { script } = FAMILIES['gpt-oss']!
  const format = { type: 'json_object' } as const
  const engine = scripted(['<|channel|>final<|message|>{}'], script)
  expect(sum(await collect(engine, { format }))).toMatchObject({ text: '{}' })
  const { constraint } = engine.asked[0]!
  const written = JSON.stringify(constraint)
  expect(written).toContain(
    '{"type":"constant","text":"<|channel|>final<|message|>"},{"type":"json"',
  )
  // Reasoning ends with the beginning of the next message.
  expect(written).toContain('"end":"<|end|>"},{"type":"constant","text":"<|start|>assistant"}')
})

test('A call is constrained to what may follow the beginning in the prompt', async () => {
  const { script } = FAMILIES['Functionary 3.2']!
  const engine = scripted(['get_time\n{}'], script)
  await collect(engine, { tools: use({ choice: 'required' }) })
  expect(engine.asked[0]?.constraint).toMatchObject({ type: 'rest', text: '>>>' })
})

const CANONICAL = cases.filter(
  ({ written }) => !/^No| to=f[^ ]*<\|channel|^get_weather is|^all the/.test(written),
)

test.each(CANONICAL)('The constraint of $name allows $written', async (given) => {
  const { written, expected, script, special } = given
  const vocabulary = smallVocabulary(['a', '{', '}'], special)
  const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const asked = { tools: use() }
  for (const choice of ['auto', 'required'] as const) {
    if ((expected.text ?? '') !== '' && choice === 'required') continue
    const fields = request({ tools: { ...asked.tools, choice } })
    const { constraint } = await planGeneration(scripted([], script), fields)
    const matcher = await compiler.open(constraint!, new AbortController().signal)
    expect(takes(matcher, vocabulary, written), choice).toBe(true)
    matcher.close()
  }
  compiler.close()
})
