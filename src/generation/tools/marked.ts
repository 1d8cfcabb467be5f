/**
 * Formats whose calls stand between marks of their own: with the arguments as JSON, or with each
 * argument in tags. One table has the marks; the grammar, the reader and the writer follow from it.
 */
import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { ToolCall } from '../../types/index.ts'
import {
  argumentsConstraint,
  type CallableTool,
  constant,
  findParameters,
  framedConstraints,
  jsonCallTag,
  parametersConstraint,
  separated,
  sequence,
  type ToolFormat,
} from './format.ts'
import { readObject } from './json.ts'
import type { Reader, Source } from './reader.ts'
import { findParameterSchema, toJson, toValueTag } from './tagged.ts'

/** Marks of a format. A mark that a format lacks is empty. */
interface Marks {
  name: string
  /** Texts of which each stands in the chat templates of the format. */
  detect: readonly string[]
  /** Texts around all calls of an answer. Without them, each call begins with `before`. */
  section: readonly [open: string, close: string] | null
  /** Text before the name of a call. */
  before: string
  /** Text after the name, of which the first character ends the name. */
  afterName: string
  /** Number of a call after its name, and the text after the number. Default: there is none. */
  afterNumber?: string
  /** Text after the arguments. */
  after: string
  /** Text between two calls. */
  between: string
  /** Tags of an argument. Without them, the arguments are a JSON object. */
  tags?: {
    beforeName: string
    afterName: string
    /** End of the value. */
    after: string
  }
}

const FORMATS: readonly Marks[] = [
  {
    name: 'deepseek',
    detect: ['<｜tool▁call▁begin｜>', '```json'],
    section: ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
    before: '<｜tool▁call▁begin｜>function<｜tool▁sep｜>',
    afterName: '\n```json\n',
    after: '\n```<｜tool▁call▁end｜>',
    between: '\n',
  },
  {
    name: 'deepseek-v3.1',
    detect: ['<｜tool▁call▁begin｜>', '<｜tool▁sep｜>'],
    section: ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
    before: '<｜tool▁call▁begin｜>',
    afterName: '<｜tool▁sep｜>',
    after: '<｜tool▁call▁end｜>',
    between: '',
  },
  {
    name: 'kimi',
    detect: ['<|tool_calls_section_begin|>', '<|tool_call_argument_begin|>'],
    section: ['<|tool_calls_section_begin|>', '<|tool_calls_section_end|>'],
    before: '<|tool_call_begin|>functions.',
    afterName: ':',
    afterNumber: '<|tool_call_argument_begin|>',
    after: '<|tool_call_end|>',
    between: '',
  },
  {
    name: 'minimax',
    detect: ['<minimax:tool_call>', '<invoke name='],
    section: ['<minimax:tool_call>\n', '\n</minimax:tool_call>'],
    before: '<invoke name="',
    afterName: '">',
    after: '\n</invoke>',
    between: '\n',
    tags: { beforeName: '\n<parameter name="', afterName: '">', after: '</parameter>' },
  },
  {
    name: 'seed',
    detect: ['<seed:tool_call>', '<function=', '<parameter='],
    section: ['<seed:tool_call>\n', '\n</seed:tool_call>'],
    before: '<function=',
    afterName: '>',
    after: '\n</function>',
    between: '\n</seed:tool_call>\n<seed:tool_call>\n',
    tags: { beforeName: '\n<parameter=', afterName: '>', after: '</parameter>' },
  },
  {
    name: 'glm-compact',
    detect: ['</arg_key><arg_value>'],
    section: ['<tool_call>', '</tool_call>'],
    before: '',
    afterName: '',
    after: '',
    between: '</tool_call><tool_call>',
    tags: { beforeName: '<arg_key>', afterName: '</arg_key><arg_value>', after: '</arg_value>' },
  },
  {
    name: 'glm',
    detect: ['<arg_key>', '<arg_value>'],
    section: ['<tool_call>', '\n</tool_call>'],
    before: '',
    afterName: '',
    after: '',
    between: '\n</tool_call>\n<tool_call>',
    tags: {
      beforeName: '\n<arg_key>',
      afterName: '</arg_key>\n<arg_value>',
      after: '</arg_value>',
    },
  },
  {
    name: 'functionary',
    detect: ['<function=example_function_name>{'],
    section: null,
    before: '<function=',
    afterName: '>',
    after: '</function>',
    between: '\n',
  },
]

/** The formats of this file. */
export const MARKED_FORMATS: readonly ToolFormat[] = FORMATS.map(toFormat)

function toFormat(marks: Marks): ToolFormat {
  const { name, detect, section, before, between } = marks
  const trigger = (section?.[0] ?? before).trim()
  const texts = [...(section ?? []), before, marks.afterName, marks.afterNumber ?? '', marks.after]
  return {
    name,
    detect: (template) => detect.every((mark) => template.includes(mark)),
    markers: [...new Set(texts.flatMap((text) => text.match(/<[^\s<>]+>/g) ?? []))],
    triggers: [trigger],
    ...(section
      ? framedConstraints(
          {
            trigger: section[0],
            lead: constant(''),
            separator: between,
            close: section[1],
          },
          (tool) => toTag(marks, before, tool),
        )
      : bareConstraints(marks)),
    read: (source) => readCalls(source, marks),
    write: (calls) =>
      (section?.[0] ?? '') +
      calls.map((call, index) => writeCall(marks, call, index)).join(between) +
      (section?.[1] ?? ''),
  }
}

/** Returns the constraints of calls without a frame. */
function bareConstraints(
  marks: Marks,
): Pick<ToolFormat, 'callsConstraint' | 'textOrCallsConstraint'> {
  const tagsOf = (tools: readonly CallableTool[]): TaggedConstraint[] =>
    tools.map((tool) => toTag(marks, marks.before, tool))
  return {
    callsConstraint: (tools, parallel) => separated(tagsOf(tools), marks.between, parallel),
    textOrCallsConstraint: (tools, parallel) => ({
      type: 'triggered',
      triggers: [marks.before],
      tags: tagsOf(tools),
      required: false,
      single: !parallel,
    }),
  }
}

const isTagName = (name: string): boolean => /^[^\s<>"]+$/.test(name)

/** Returns the constraint of a call. Arguments that tags cannot keep are JSON, as in Hermes. */
function toTag(marks: Marks, before: string, tool: CallableTool): TaggedConstraint {
  const { tags, afterName, afterNumber, after } = marks
  const begin = `${before}${tool.name}${afterName}`
  if (!tags) return { type: 'tagged', begin, content: toArguments(tool, afterNumber), end: after }
  const all = isTagName(tool.name) ? findParameters(tool, isTagName) : null
  if (!all) return jsonCallTag('arguments')(tool)
  const content = parametersConstraint('', all, (parameter) =>
    toValueTag(parameter, `${tags.beforeName}${parameter.name}${tags.afterName}`, tags.after),
  )
  return { type: 'tagged', begin, content, end: after }
}

function toArguments(tool: CallableTool, afterNumber: string | undefined): Constraint {
  if (afterNumber === undefined) return argumentsConstraint(tool)
  const number: Constraint = { type: 'pattern', pattern: '[0-9]{1,3}' }
  return sequence(number, constant(afterNumber), argumentsConstraint(tool))
}

/** Reads calls after the trigger, up to the end of their section. */
function* readCalls(source: Source, marks: Marks): Reader<boolean> {
  const { section, before } = marks
  const close = (section?.[1] ?? '').trim()
  for (let count = 0; ; count += 1) {
    yield* source.skipSpace()
    if (count > 0 && close !== '' && (yield* source.consume(close))) return true
    if ((yield* source.peek()) === '{') {
      if (!(yield* readObject(source))) return false
    } else {
      // Without a section, the trigger was the text before the name.
      if (section && before !== '' && !(yield* source.consume(before))) return false
      const read = marks.tags ? readTagged : readJsonCall
      if (!(yield* read(source, marks))) return false
    }
    if (!section) return true
  }
}

/** Reads a call from its name on, with the arguments as a JSON object. */
function* readJsonCall(source: Source, { afterName, afterNumber, after }: Marks): Reader<boolean> {
  const name = (yield* source.consumeUntil(afterName)) ?? ''
  const tool = source.tool(name.trim())
  if (!tool) return false
  if (afterNumber !== undefined && (yield* source.consumeUntil(afterNumber)) === null) return false
  yield* source.skipSpace()
  if ((yield* source.peek()) !== '{') return false
  source.call(tool)
  if (!(yield* source.readArguments())) return false
  source.done()
  yield* source.skipSpace()
  return yield* source.consume(after.trim())
}

/** Reads a call from its name on, with each argument in tags. */
function* readTagged(source: Source, { afterName, after, tags }: Marks): Reader<boolean> {
  const tool = source.tool(yield* source.consumeRun(/[^\s<>"]+/y))
  if (!tool || !tags || !(yield* source.consume(afterName))) return false
  source.call(tool)
  source.args('{')
  let comma = ''
  for (;;) {
    yield* source.skipSpace()
    if (!(yield* source.consume(tags.beforeName.trim()))) break
    const [nameEnd = '', valueBegin = ''] = tags.afterName.split(/(?<=>)\s*/)
    const name = yield* source.consumeUntil(nameEnd)
    if (valueBegin !== '') {
      yield* source.skipSpace()
      if (!(yield* source.consume(valueBegin))) return source.completeArguments('}')
    }
    const value = name === null ? null : yield* source.consumeUntil(tags.after)
    if (name === null || value === null) return source.completeArguments('}')
    const json = toJson(value, findParameterSchema(tool.parameters, name.trim()))
    source.args(`${comma}${JSON.stringify(name.trim())}: ${json}`)
    comma = ', '
  }
  if (!(yield* source.consume(after.trim()))) return source.completeArguments('}')
  source.args('}')
  return source.done()
}

function writeCall(marks: Marks, { name, arguments: text }: ToolCall, index: number): string {
  const { before, afterName, afterNumber, after, tags } = marks
  const begin = `${before}${name}${afterName}`
  if (!tags) {
    const number = afterNumber === undefined ? '' : `${index}${afterNumber}`
    return `${begin}${number}${text}${after}`
  }
  const values = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const written = values.map(([key, value]) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value)
    return `${tags.beforeName}${key}${tags.afterName}${shown}${tags.after}`
  })
  return `${begin}${written.join('')}${after}`
}
