/** Reads calls that are written as JSON objects, alone or in a list. */
import { isObject } from '../../values/objects.ts'
import type { Tool } from '../../types/index.ts'
import type { CallSink } from './format.ts'
import { consume, peek, type Reader, skipSpace, type Source } from './reader.ts'
import { readJson, readValue } from './value.ts'

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
