/** Reads calls that are written as JSON objects, alone or in a list. */
import type { Tool } from '../../types/index.ts'
import type { Sink } from './format.ts'
import { type Reading, type Source, peek, space, take } from './reading.ts'
import { readJson, readValue } from './value.ts'

const ARGUMENTS = ['arguments', 'parameters']

/**
 * Reads `{"name": …, "arguments": {…}}`, with keys in any order and additional keys. Returns
 * `false` if the text is not such an object.
 */
export function* readObject(source: Source, sink: Sink): Reading<boolean> {
  if (!(yield* take(source, '{'))) return false
  let tool: Tool | undefined
  let early: string | undefined
  let called = false

  for (;;) {
    yield* space(source)
    if ((yield* peek(source)) !== '"') return false
    const key = parse(yield* readJson(source))
    yield* space(source)
    if (!(yield* take(source, ':'))) return false
    yield* space(source)
    if (ARGUMENTS.includes(String(key))) {
      if (tool && !called && (yield* peek(source)) === '{') {
        called = true
        sink.call(tool)
        const rest = yield* readValue(source, sink.args)
        if (rest !== null) return mend(source, sink, rest)
      } else {
        early = objectText(yield* readJson(source))
        if (early === undefined) return false
      }
    } else {
      const value = parse(yield* readJson(source))
      if (value === undefined) return false
      if (key === 'name') {
        tool = sink.tool(String(value))
        if (!tool) return false
      }
    }
    yield* space(source)
    if (yield* take(source, ',')) continue
    // Small models forget the last brace. The arguments are complete nevertheless.
    if (!(yield* take(source, '}')) && (!called || (source.ended && source.cut))) return false
    break
  }
  if (!tool) return false
  if (!called) {
    sink.call(tool)
    sink.args(early ?? '{}')
  }
  sink.done()
  return true
}

/** Completes truncated arguments. They stay truncated if a token limit ended the answer. */
export function mend(source: Source, sink: Sink, rest: string): false {
  if (!(source.ended && source.cut)) sink.args(rest)
  return false
}

/** Reads `[call, call]`. Returns `false` if the list is malformed. */
export function* readList(
  source: Source,
  sink: Sink,
  read: (source: Source, sink: Sink) => Reading<boolean>,
): Reading<boolean> {
  yield* space(source)
  if (!(yield* take(source, '['))) return false
  do {
    yield* space(source)
    if (!(yield* read(source, sink))) return false
    yield* space(source)
  } while (yield* take(source, ','))
  return yield* take(source, ']')
}

/** Returns the text of an object, which may be JSON inside a string; otherwise `undefined`. */
function objectText(json: string | undefined): string | undefined {
  const value = parse(json)
  const text = typeof value === 'string' ? value : json
  const object = typeof value === 'string' ? parse(value) : value
  const isObject = typeof object === 'object' && object !== null && !Array.isArray(object)
  return isObject ? text : undefined
}

function parse(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json)
  } catch {
    return undefined
  }
}
