/** Creates a tool format from the marks around its calls, and the syntax of one call. */
import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import {
  type CallableTool,
  type CallSyntax,
  constant,
  larkOf,
  separated,
  sequence,
  type ToolFormat,
} from './format.ts'
import { readObject } from './json.ts'
import type { Reader, Source } from './reader.ts'

/** A row of the table of formats. */
export interface FormatRow {
  name: string
  /** Texts and patterns that each occur in the chat templates of the format. */
  detect: readonly (string | RegExp)[]
  /** Text around all calls of an answer. Without it, each call begins by itself. */
  section?: {
    /** Text with which the calls begin, and which is never text of an answer. */
    trigger: string
    /** Text between the trigger and the first call. Default: none. */
    lead?: string
    /** Pattern of the texts that may stand there. Default: `lead` alone. */
    leadPattern?: string
    close: string
  }
  call: CallSyntax
  /** Text between two calls. */
  between: string
  /** Texts with which calls begin if they have no section. Brackets are a part of the call. */
  triggers?: readonly string[]
  /** Texts that models write before or between calls, and that mean nothing. Default: none. */
  fillers?: readonly string[]
  /** Special tokens of the calls. Default: all words in angle brackets that occur in the row. */
  markers?: readonly string[]
  /** Syntax in which models of the format write calls, too. */
  other?: CallSyntax
  /** `true` if calls without a section stand in square brackets. */
  isList?: boolean
  /** `true` if an answer has at most one call. */
  isSingle?: boolean
  /** `true` if calls are the whole answer; a pattern of the characters that begin other answers. */
  exclusive?: { textStart: string }
  /** Mark that begins text, and that a model may write where calls begin. */
  textMark?: string
}

/** Creates the format of a row of the table. */
export function createFormat(row: FormatRow): ToolFormat {
  const { name, section, call, between, exclusive } = row
  const sample = call.write({ id: '', name: 'a', arguments: '{"a": "", "b": 1}' }, 0)
  const triggers = section ? [section.trigger] : (row.triggers ?? [])
  const texts = [section?.trigger, section?.lead, section?.close, between, sample, ...triggers]
  const [begin, end] = section
    ? [section.trigger + (section.lead ?? ''), section.close]
    : row.isList
      ? ['[', ']']
      : ['', '']
  return {
    name,
    detect: (template) =>
      row.detect.every((mark) =>
        typeof mark === 'string' ? template.includes(mark) : mark.test(template),
      ),
    markers: row.markers ?? [
      ...new Set(texts.flatMap((text) => text?.match(/<[^\s<>=]+>|\[[A-Z_]+\]/g) ?? [])),
    ],
    triggers,
    ...(textTagOf(row) && { writesPlainText: true }),
    ...(exclusive && { isExclusive: true }),
    ...(section ? sectionConstraints(row, section) : bareConstraints(row)),
    read: (source, trigger) => readCalls(source, row, trigger),
    write: (calls) =>
      begin + calls.map((each, index) => call.write(each, index)).join(between) + end,
  }
}

type Constraints = Pick<ToolFormat, 'callsConstraint' | 'textOrCallsConstraint'>

function sectionConstraints(
  row: FormatRow,
  section: NonNullable<FormatRow['section']>,
): Constraints {
  const { trigger, lead, leadPattern: pattern, close } = section
  const before =
    pattern === undefined ? lead && constant(lead) : ({ type: 'pattern', pattern } as const)
  const frame = (tools: readonly CallableTool[], parallel: boolean): TaggedConstraint => ({
    type: 'tagged',
    begin: trigger,
    content: sequence(
      ...(before ? [before] : []),
      separated(tagsOf(row, tools), row.between, parallel),
    ),
    end: close,
  })
  return {
    callsConstraint: frame,
    textOrCallsConstraint: (tools, parallel) => ({
      type: 'triggered',
      triggers: [trigger],
      tags: [frame(tools, parallel)],
      required: false,
      single: true,
    }),
  }
}

/** Returns the constraints of calls without a section. */
function bareConstraints(row: FormatRow): Constraints {
  const { between, exclusive, isList, isSingle = false, textMark, triggers = [] } = row
  const callsConstraint = (tools: readonly CallableTool[], parallel: boolean): Constraint => {
    const calls = separated(tagsOf(row, tools), between, parallel && !isSingle)
    return isList ? sequence(constant('['), calls, constant(']')) : calls
  }
  if (exclusive) {
    const start: Constraint = { type: 'pattern', pattern: exclusive.textStart }
    return {
      callsConstraint,
      textOrCallsConstraint: (tools, parallel) => ({
        type: 'choice',
        parts: [callsConstraint(tools, parallel), sequence(start, { type: 'text' })],
      }),
    }
  }
  const mark: readonly TaggedConstraint[] =
    textMark === undefined
      ? []
      : [{ type: 'tagged', begin: textMark, content: constant(''), end: '' }]
  return {
    callsConstraint,
    textOrCallsConstraint: (tools, parallel) => ({
      type: 'triggered',
      triggers: triggers.slice(0, 1),
      tags: [...mark, ...tagsOf(row, tools)],
      required: false,
      // A mark that begins text is no call, after which nothing may follow.
      single: (isSingle || !parallel) && mark.length === 0,
    }),
  }
}

const textTagOf = ({ call, other }: FormatRow): CallSyntax['textTag'] =>
  call.textTag ?? other?.textTag

function tagsOf(row: FormatRow, tools: readonly CallableTool[]): TaggedConstraint[] {
  const textTag = textTagOf(row)
  return tools.map((tool) => {
    const grammar = larkOf(tool)
    if (grammar === null || !textTag) return row.call.tag(tool)
    return textTag(tool.name, { type: 'grammar', grammar, syntax: 'lark' })
  })
}

/** Reads the calls after a trigger: all of a section, or one and those that are listed with it. */
function* readCalls(source: Source, row: FormatRow, trigger: string): Reader<boolean> {
  const { section, fillers = [] } = row
  const { lead = '', close: closing = '' } = section ?? {}
  const close = (lead.includes('[') ? closing.replace(/^\s*\]/, '') : closing).trim()
  // A bracket belongs to the call or the list that it begins.
  const isBracket = trigger === '{' || trigger === '['
  if (isBracket) source.at -= trigger.length
  yield* skipFillers(source, fillers)
  const isList = yield* source.consume('[')
  for (let count = 0; ; count += 1) {
    yield* skipFillers(source, fillers)
    if (count > 0) {
      const isSeparated = yield* source.consumeAny([',', ';'])
      if (isSeparated) yield* skipFillers(source, fillers)
      else if (isList && (yield* source.consume(']'))) {
        yield* skipFillers(source, fillers)
        yield* source.consume(close)
        return !source.isCut
      } else if (section ? close !== '' && (yield* source.consume(close)) : !isList)
        return !source.isCut
    }
    const isBegun = !section && !isBracket && count === 0
    if (!(yield* readCall(source, row, isBegun))) return false
  }
}

function* readCall(source: Source, row: FormatRow, isBegun: boolean): Reader<boolean> {
  const { call, other } = row
  const isObject = (yield* source.peek()) === '{'
  if (isObject && !call.isObject) return yield* readObject(source)
  const syntax = isObject || !call.isObject ? call : other
  return syntax ? yield* syntax.read(source, isBegun && syntax === call) : false
}

/** Skips white space and texts without a meaning. */
function* skipFillers(source: Source, fillers: readonly string[]): Reader<void> {
  do yield* source.skipSpace()
  while (yield* source.consumeAny(fillers))
}
