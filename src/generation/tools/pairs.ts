/** Calls whose arguments are pairs of names and values between braces. */
import type { Constraint } from '../../constraint/index.ts'
import { isObject } from '../../values/objects.ts'
import {
  argumentsConstraint,
  type CallSyntax,
  constant,
  findItems,
  findParameters,
  findPlainType,
  type Parameter,
  parametersConstraint,
  sequence,
  valueConstraint,
} from './format.ts'
import { findStringEnum } from './tagged.ts'

const isName = (name: string): boolean => /^[^\s:{}[\],<>"']+$/.test(name)

/**
 * The syntax of calls such as `call:send{to:"Ada",copies:["Bo"]}`, with `quote` around strings and
 * without quotes around names. A tool whose schema restricts more than each parameter on its own is
 * called with JSON between the braces.
 */
export function pairsCall(before: string, quote: string): CallSyntax {
  const toText = (content: Constraint): Constraint => ({
    type: 'tagged',
    begin: quote,
    content,
    end: quote,
  })
  const toValue = (parameter: Parameter): Constraint => {
    const { schema } = parameter
    const choices = findStringEnum(schema)
    if (choices) return toText({ type: 'choice', parts: choices.map(constant) })
    if (findPlainType(schema) === 'string') return toText({ type: 'text' })
    const items = findItems(schema)
    if (items !== null) {
      const content = toValue({ ...parameter, schema: items })
      const tags = [{ type: 'tagged' as const, begin: '', content, end: '' }]
      const list = { type: 'separated' as const, tags, separator: ',', single: false }
      return sequence(constant('['), { ...list, required: false }, constant(']'))
    }
    const all = findParameters({ ...parameter, parameters: schema }, isName)
    return all ? toObject(all) : valueConstraint(parameter)
  }
  const toObject = (all: readonly Parameter[]): Constraint => {
    const pairs = parametersConstraint(',', all, (parameter) =>
      sequence(constant(`${parameter.name}:`), toValue(parameter)),
    )
    return sequence(constant('{'), pairs, constant('}'))
  }
  const write = (value: unknown): string => {
    if (typeof value === 'string') return `${quote}${value}${quote}`
    if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
    if (!isObject(value)) return JSON.stringify(value)
    const pairs = Object.entries(value).map(
      ([name, each]) => `${isName(name) ? name : write(name)}:${write(each)}`,
    )
    return `{${pairs.join(',')}}`
  }
  return {
    tag(tool) {
      const all = findParameters(tool, isName)
      const content = all ? toObject(all) : argumentsConstraint(tool)
      return { type: 'tagged', begin: `${before}${tool.name}`, content, end: '' }
    },
    textTag: (name, content) => ({
      type: 'tagged',
      begin: `${before}${name}{input:${quote}`,
      content,
      end: `${quote}}`,
    }),
    *read(source) {
      yield* source.skipSpace()
      if (!(yield* source.consume(before))) return false
      const tool = source.tool(yield* source.consumeRun(/[^\s{}<>"]+/y))
      if (!tool || (yield* source.peek()) !== '{') return false
      source.call(tool)
      // A template that gets JSON text for arguments puts it between the braces.
      const isDouble = yield* source.consume('{{')
      if (isDouble) source.at -= 1
      if (!(yield* source.readArguments({ quote }))) return false
      if (isDouble) yield* source.consume('}')
      return source.done()
    },
    write: ({ name, arguments: text }) => `${before}${name}${write(JSON.parse(text))}`,
  }
}
