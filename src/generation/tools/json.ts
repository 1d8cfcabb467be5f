/** Reads calls that are written as JSON objects, alone or in a list. */
import type { Constraint } from '../../constraint/index.ts'
import type { Tool } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import {
  type CallableTool,
  constant,
  jsonCallTag,
  jsonListFormat,
  separated,
  sequence,
  type ToolFormat,
  writeJsonCall,
} from './format.ts'
import { type Reader, readJson, type Source } from './reader.ts'

const ARGUMENTS = ['arguments', 'parameters']

/**
 * Reads `{"name": …, "arguments": {…}}`, with keys in any order and additional keys. Returns
 * `false` if the text is not such an object.
 */
export function* readObject(source: Source): Reader<boolean> {
  if (!(yield* source.consume('{'))) return false
  let tool: Tool | undefined
  let earlyArguments: string | undefined
  let isCalled = false

  for (;;) {
    yield* source.skipSpace()
    if ((yield* source.peek()) !== '"') return false
    const key = parseJson(yield* readJson(source))
    yield* source.skipSpace()
    if (!(yield* source.consume(':'))) return false
    yield* source.skipSpace()
    if (ARGUMENTS.includes(String(key))) {
      if (tool && !isCalled && (yield* source.peek()) === '{') {
        isCalled = true
        source.call(tool)
        if (!(yield* source.readArguments())) return false
      } else {
        earlyArguments = objectText(yield* readJson(source))
        if (earlyArguments === undefined) return false
      }
    } else {
      const value = parseJson(yield* readJson(source))
      if (value === undefined) return false
      if (key === 'name') {
        tool = source.tool(String(value))
        if (!tool) return false
      }
    }
    yield* source.skipSpace()
    if (yield* source.consume(',')) continue
    // Small models forget the last brace. The arguments are complete nevertheless.
    if (!(yield* source.consume('}')) && (!isCalled || (source.isEnded && source.isTruncated)))
      return false
    break
  }
  if (!tool) return false
  if (!isCalled) {
    source.call(tool)
    source.args(earlyArguments ?? '{}')
  }
  return source.done()
}

/** Reads `[call, call]`. Returns `false` if the list is malformed. */
export function* readList(
  source: Source,
  read: (source: Source) => Reader<boolean>,
): Reader<boolean> {
  yield* source.skipSpace()
  if (!(yield* source.consume('['))) return false
  do {
    yield* source.skipSpace()
    if (!(yield* read(source))) return false
    yield* source.skipSpace()
  } while (yield* source.consume(','))
  return yield* source.consume(']')
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
  read: (source) => readList(source, readObject),
}

const OPEN = '{'
const PYTHON = '<|python_tag|>'

const toCallsConstraint = (tools: readonly CallableTool[], parallel: boolean): Constraint =>
  separated(tools.map(jsonCallTag('parameters')), '; ', parallel)

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

function* readCalls(source: Source, trigger: string): Reader<boolean> {
  if (trigger === OPEN) source.at -= OPEN.length
  do {
    yield* source.skipSpace()
    yield* source.consume(PYTHON)
    yield* source.skipSpace()
    if (!(yield* readObject(source))) return false
    yield* source.skipSpace()
  } while (yield* source.consume(';'))
  return true
}
