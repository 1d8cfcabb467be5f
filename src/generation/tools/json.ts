/** Reads calls that are written as JSON objects, alone or in a list. */
import type { Constraint } from '../../constraint/index.ts'
import type { Tool } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import {
  type CallableTool,
  type CallSink,
  constant,
  jsonCallTag,
  jsonListFormat,
  sequence,
  type ToolFormat,
  writeJsonCall,
} from './format.ts'
import {
  consume,
  peek,
  type Reader,
  readJson,
  readValue,
  skipSpace,
  type Source,
} from './reader.ts'

const ARGUMENTS = ['arguments', 'parameters']

/**
 * Reads `{"name": …, "arguments": {…}}`, with keys in any order and additional keys. Returns
 * `false` if the text is not such an object.
 */
export function* readObject(source: Source, sink: CallSink): Reader<boolean> {
  if (!(yield* consume(source, '{'))) return false
  let tool: Tool | undefined
  let earlyArguments: string | undefined
  let isCalled = false

  for (;;) {
    yield* skipSpace(source)
    if ((yield* peek(source)) !== '"') return false
    const key = parseJson(yield* readJson(source))
    yield* skipSpace(source)
    if (!(yield* consume(source, ':'))) return false
    yield* skipSpace(source)
    if (ARGUMENTS.includes(String(key))) {
      if (tool && !isCalled && (yield* peek(source)) === '{') {
        isCalled = true
        sink.call(tool)
        const rest = yield* readValue(source, sink.args)
        if (rest !== null) return completeArguments(source, sink, rest)
      } else {
        earlyArguments = objectText(yield* readJson(source))
        if (earlyArguments === undefined) return false
      }
    } else {
      const value = parseJson(yield* readJson(source))
      if (value === undefined) return false
      if (key === 'name') {
        tool = sink.tool(String(value))
        if (!tool) return false
      }
    }
    yield* skipSpace(source)
    if (yield* consume(source, ',')) continue
    // Small models forget the last brace. The arguments are complete nevertheless.
    if (!(yield* consume(source, '}')) && (!isCalled || (source.isEnded && source.isTruncated)))
      return false
    break
  }
  if (!tool) return false
  if (!isCalled) {
    sink.call(tool)
    sink.args(earlyArguments ?? '{}')
  }
  sink.done()
  return true
}

/** Completes truncated arguments. They stay truncated if a token limit ended the answer. */
export function completeArguments(source: Source, sink: CallSink, rest: string): false {
  if (!(source.isEnded && source.isTruncated)) sink.args(rest)
  return false
}

/** Reads `[call, call]`. Returns `false` if the list is malformed. */
export function* readList(
  source: Source,
  sink: CallSink,
  read: (source: Source, sink: CallSink) => Reader<boolean>,
): Reader<boolean> {
  yield* skipSpace(source)
  if (!(yield* consume(source, '['))) return false
  do {
    yield* skipSpace(source)
    if (!(yield* read(source, sink))) return false
    yield* skipSpace(source)
  } while (yield* consume(source, ','))
  return yield* consume(source, ']')
}

/** Returns the text of an object, which may be JSON inside a string; otherwise `undefined`. */
function objectText(json: string | undefined): string | undefined {
  const value = parseJson(json)
  const text = typeof value === 'string' ? value : json
  return isObject(typeof value === 'string' ? parseJson(value) : value) ? text : undefined
}

function parseJson(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json)
  } catch {
    return undefined
  }
}

const TRIGGER = '<|tool_call|>'

/** The format of Granite 3: a JSON list after `<|tool_call|>`. */
export const granite: ToolFormat = {
  name: 'granite',
  detect: (template) => template.includes(TRIGGER),
  markers: [TRIGGER],
  triggers: [TRIGGER],
  ...jsonListFormat(TRIGGER, constant('[')),
  read: (source, sink) => readList(source, sink, readObject),
}

const OPEN = '{'
const PYTHON = '<|python_tag|>'

/**
 * The format of Llama 3.1 to 3.3: JSON objects and nothing else, separated by `; `. They may follow
 * `<|python_tag|>`. Text, if it is allowed, begins with neither.
 */
export const llama: ToolFormat = {
  name: 'llama',
  detect: (template) =>
    template.includes('<|start_header_id|>') && /"parameters\\?": /.test(template),
  markers: [PYTHON],
  triggers: [OPEN, PYTHON],
  isExclusive: true,
  callsConstraint: toCallsConstraint,
  textOrCallsConstraint: (tools, parallel) => ({
    type: 'choice',
    parts: [
      toCallsConstraint(tools, parallel),
      sequence({ type: 'pattern', pattern: '[^{<\\n ]|<[^|]' }, { type: 'text' }),
    ],
  }),
  read: readCalls,
  write: (calls) => calls.map(writeJsonCall('parameters')).join('; '),
}

function toCallsConstraint(tools: readonly CallableTool[], parallel: boolean): Constraint {
  return {
    type: 'separated',
    tags: tools.map(jsonCallTag('parameters')),
    separator: '; ',
    required: true,
    single: !parallel,
  }
}

function* readCalls(source: Source, sink: CallSink, trigger: string): Reader<boolean> {
  if (trigger === OPEN) source.at -= OPEN.length
  do {
    yield* skipSpace(source)
    yield* consume(source, PYTHON)
    yield* skipSpace(source)
    if (!(yield* readObject(source, sink))) return false
    yield* skipSpace(source)
  } while (yield* consume(source, ';'))
  return true
}
