import type { Constraint, TaggedConstraint } from '../../engine/constraint.ts'
import type { Tool, ToolCall } from '../../types/index.ts'
import { type Parameter, parameters, separatedBy } from './arguments.ts'
import { constant, framed, jsonTag, type ToolFormat } from './format.ts'
import { BETWEEN, CLOSE, isString, OPEN, readTagged, wordsOf } from './tagged.ts'

/**
 * The format of Qwen3-Coder and Qwen 3.5: a function with its parameters in tags, within
 * `<tool_call>` tags. Strings are written verbatim, other values as JSON. A tool whose schema
 * restricts more than each parameter on its own is called with a JSON object. Earlier models
 * learned that format.
 */
export const xml: ToolFormat = {
  name: 'xml',
  detect: (template) =>
    [OPEN, '<function=', '<parameter='].every((mark) => template.includes(mark)),
  markers: [OPEN, CLOSE],
  triggers: [OPEN],
  ...framed({ trigger: OPEN, lead: constant('\n'), separator: BETWEEN, close: `\n${CLOSE}` }, tag),
  read: readTagged,
  write: (calls) => `${OPEN}\n${calls.map(write).join(BETWEEN)}\n${CLOSE}`,
}

const fits = (name: string): boolean => /^[^\s<>]+$/.test(name)

function tag(tool: Tool): TaggedConstraint {
  const all = fits(tool.name) ? parameters(tool, fits) : null
  if (!all) return jsonTag('arguments')(tool)
  return {
    type: 'tagged',
    begin: `<function=${tool.name}>`,
    content: separatedBy('', all, parameterTag),
    end: '\n</function>',
  }
}

function parameterTag({ name, schema }: Parameter): Constraint {
  const begin = `\n<parameter=${name}>\n`
  const end = '\n</parameter>'
  const words = wordsOf(schema)
  if (words)
    return { type: 'tagged', begin, content: { type: 'choice', parts: words.map(constant) }, end }
  if (!isString(schema)) return { type: 'tagged', begin, content: { type: 'json', schema }, end }
  // Text ends at the tag. The model itself writes the line break before the tag.
  return { type: 'tagged', begin, content: { type: 'text' }, end: '</parameter>' }
}

function write({ name, arguments: text }: ToolCall): string {
  const values = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const tags = values.map(([key, value]) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value)
    return `<parameter=${key}>\n${shown}\n</parameter>\n`
  })
  return `<function=${name}>\n${tags.join('')}</function>`
}
