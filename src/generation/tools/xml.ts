import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { ToolCall } from '../../types/index.ts'
import {
  findParameters,
  type Parameter,
  parametersConstraint,
  valueConstraint,
} from './arguments.ts'
import { type CallableTool, constant, jsonCallTag, type ToolFormat } from './format.ts'
import { findStringEnum, isVerbatimString, OPEN, taggedFormat } from './tagged.ts'

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
  ...taggedFormat(toCallTag, writeCall),
}

const isTagName = (name: string): boolean => /^[^\s<>]+$/.test(name)

function toCallTag(tool: CallableTool): TaggedConstraint {
  const all = isTagName(tool.name) ? findParameters(tool, isTagName) : null
  if (!all) return jsonCallTag('arguments')(tool)
  return {
    type: 'tagged',
    begin: `<function=${tool.name}>`,
    content: parametersConstraint('', all, toParameterTag),
    end: '\n</function>',
  }
}

function toParameterTag(parameter: Parameter): Constraint {
  const { name, schema } = parameter
  const begin = `\n<parameter=${name}>\n`
  const end = '\n</parameter>'
  const choices = findStringEnum(schema)
  if (choices)
    return { type: 'tagged', begin, content: { type: 'choice', parts: choices.map(constant) }, end }
  if (!isVerbatimString(schema))
    return { type: 'tagged', begin, content: valueConstraint(parameter), end }
  // Text ends at the tag. The model itself writes the line break before the tag.
  return { type: 'tagged', begin, content: { type: 'text' }, end: '</parameter>' }
}

function writeCall({ name, arguments: text }: ToolCall): string {
  const values = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const tags = values.map(([key, value]) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value)
    return `<parameter=${key}>\n${shown}\n</parameter>\n`
  })
  return `<function=${name}>\n${tags.join('')}</function>`
}
