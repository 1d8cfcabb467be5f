import { expect, test } from 'vitest'
import { createConstraintCompiler } from '../../../src/constraint/index.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { FORMATS, toolConstraint, type ToolFormat } from '../../../src/generation/tools/index.ts'
import { ToolParser } from '../../../src/generation/tools/parser.ts'
import type { Tool, ToolUse } from '../../../src/types/index.ts'
import { parametersOf } from '../../../src/values/custom-tools.ts'
import { createChance } from '../../support/random.ts'
import { takes, walk, WASM } from '../../support/random-constraints.ts'
import { runs } from '../../support/runs.ts'
import { smallVocabulary } from '../../support/vocabulary.ts'
import { request, scripted } from './scripted.ts'

const sums: Tool = {
  name: 'sums',
  parameters: true,
  input: {
    type: 'grammar',
    syntax: 'lark',
    definition: 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/',
  },
}
const words: Tool = {
  name: 'words',
  parameters: true,
  input: { type: 'grammar', syntax: 'regex', definition: '[a-z]+( [a-z]+)*' },
}
const use = (...tools: Tool[]): ToolUse => ({ tools, choice: 'required', parallel: false })

const { signal } = new AbortController()

/** Returns the texts of the calls in an answer. */
function inputsOf(format: ToolFormat, tool: Tool, written: string): unknown[] {
  const parser = new ToolParser({ format, tools: [{ ...tool, parameters: parametersOf(tool) }] })
  const json = [...parser.push(written), ...parser.end(false)].reduce(
    (all, part) =>
      all + (part.type === 'arguments' ? part.text : part.type === 'called' ? '\n' : ''),
    '',
  )
  return json
    .trim()
    .split('\n')
    .map((text) => (JSON.parse(text) as { input: unknown }).input)
}

const PLAIN = FORMATS.filter(({ writesPlainText }) => writesPlainText)

test('Formats that write texts without escapes keep Lark grammars', () => {
  expect(PLAIN.map(({ name }) => name).sort()).toEqual(
    (
      'deepseek-v3.2 deepseek-v4 gemma glm glm-compact hermes hunyuan minicpm minimax minimax-m3 ' +
      'seed xml'
    ).split(' '),
  )
})

test.each(PLAIN)(
  '$name: a custom tool is called with a text of its Lark grammar',
  async (format) => {
    const vocabulary = smallVocabulary([])
    const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
    // Hermes has JSON for functions, but the tags of Qwen3-Coder for texts.
    const writer = FORMATS.find(
      ({ name }) => name === (format.name === 'hermes' ? 'xml' : format.name),
    )
    const call = (text: string): string =>
      (writer ?? format).write([
        { id: '', name: 'sums', arguments: JSON.stringify({ input: text }) },
      ])
    for (const [text, isAccepted] of Object.entries({
      '1': true,
      '1+22': true,
      '1+': false,
      x: false,
    })) {
      const matcher = await compiler.open(toolConstraint(format, use(sums)), signal)
      expect(takes(matcher, vocabulary, call(text)), text).toBe(isAccepted)
      matcher.close()
      if (isAccepted) expect(inputsOf(format, sums, call(text))).toEqual([text])
    }
    compiler.close()
  },
)

test.each(FORMATS)('$name: a custom tool is called with a text of its pattern', async (format) => {
  const vocabulary = smallVocabulary(['ab', ' cd', 'é', '"', '\\', '\n', '\\n', '9'])
  const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const hard: Tool = {
    ...words,
    input: { type: 'grammar', syntax: 'regex', definition: '[a-zé"\\\\\\n]{1,9}( [9<]{1,3})?' },
  }
  const chance = createChance(7)
  let found = 0
  for (let round = 0; round < runs(8, 60); round += 1) {
    const matcher = await compiler.open(toolConstraint(format, use(hard)), signal)
    const { text, ended } = walk(matcher, vocabulary, chance, 30)
    matcher.close()
    if (!ended) continue
    found += 1
    for (const input of inputsOf(format, hard, text))
      expect(input, text).toMatch(/^[a-zé"\\\n]{1,9}( [9<]{1,3})?$/)
  }
  expect(found).toBeGreaterThan(1)
  compiler.close()
})

test('A model that calls tools with JSON only names a Lark grammar that it does not keep', async () => {
  const template = '<|start_header_id|>{% if tools %}{"name": x, "parameters": y}'
  const plan = (tools: ToolUse) =>
    planGeneration(scripted([], { template }), { ...request(), tools })
  expect((await plan(use(words, sums))).loosened).toEqual(['tools[1].input.definition'])
  expect((await plan(use(words))).loosened).toEqual([])
})
