import { expect, test } from 'vitest'
import { createConstraintCompiler } from '../../../src/constraint/index.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { FORMATS, toolConstraint } from '../../../src/generation/tools/index.ts'
import type { Tool, ToolUse } from '../../../src/types/index.ts'
import { takes, WASM } from '../../support/random-constraints.ts'
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

test.each(['hermes', 'xml'])(
  'A custom tool of %s is called with a text of its grammar',
  async (name) => {
    const format = FORMATS.find((each) => each.name === name)
    if (!format) throw new Error(name)
    const vocabulary = smallVocabulary([])
    const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
    const { signal } = new AbortController()
    const call = (text: string) =>
      `<tool_call>\n<function=sums>\n<parameter=input>\n${text}\n</parameter>\n</function>\n</tool_call>`
    const accepts = async (text: string) => {
      const matcher = await compiler.open(toolConstraint(format, use(sums)), signal)
      return takes(matcher, vocabulary, call(text))
    }
    expect(await Promise.all(['1', '1+22+3', '1+', 'x'].map(accepts))).toEqual([
      true,
      true,
      false,
      false,
    ])
    const regex = JSON.stringify(
      toolConstraint(FORMATS.find((each) => each.name === 'hermes') ?? format, use(words)),
    )
    expect(regex).toContain('"strict":true,"path":"tools[0].input.definition"')
    compiler.close()
  },
)

test('A model that calls tools with JSON only names a Lark grammar that it does not keep', async () => {
  const template = '<|start_header_id|>{% if tools %}{"name": x, "parameters": y}'
  const plan = (tools: ToolUse) =>
    planGeneration(scripted([], { template }), { ...request(), tools })
  expect((await plan(use(words, sums))).loosened).toEqual(['tools[1].input.definition'])
  expect((await plan(use(words))).loosened).toEqual([])
})
