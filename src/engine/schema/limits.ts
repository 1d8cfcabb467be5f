/** Rejects schemas so large that compiling them would take too long. */
import type { JsonSchema } from '../../types/index.ts'
import { rejectSchema, under } from './node.ts'
import { isObject } from '../../values/objects.ts'

/** Maximum number of names that an object may list. The time grows with the square of it. */
const MAX_OBJECT_NAMES = 500
/** Maximum length of a tuple. Each element is nested in the one before it, which uses the stack. */
const MAX_TUPLE_ITEMS = 500
/** Maximum number of keywords, names and values in total. */
const MAX_SCHEMA_VALUES = 20_000

/** Maximum length of a name in UTF-16 units. Names become parts of paths, which are compared. */
const MAX_NAME_CHARACTERS = 1000
/** Maximum length of the path of a part in UTF-16 units. */
const MAX_PATH_CHARACTERS = 10_000

/** Throws if a limit is exceeded, and names the place. Visits each part once, without recursion. */
export function checkLimits(schema: JsonSchema, path: string): void {
  const waiting: Array<{ part: unknown; path: string }> = [{ part: schema, path }]
  let values = 0
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { part, path: here } = next
    if (here.length > path.length + MAX_PATH_CHARACTERS) {
      rejectSchema(
        here.slice(0, path.length + MAX_NAME_CHARACTERS),
        `has a part whose path is longer than ${MAX_PATH_CHARACTERS} characters. Make it flatter.`,
      )
    }
    if (Array.isArray(part)) {
      part.forEach((each: unknown, index) => waiting.push({ part: each, path: under(here, index) }))
    } else if (isObject(part)) {
      for (const [key, each] of Object.entries(part)) {
        assertShortNames([key], here)
        const valuePath = under(here, key)
        if (key === 'required' && Array.isArray(each)) assertShortNames(each, valuePath)
        if ((key === 'properties' || key === 'required') && sizeOf(each) > MAX_OBJECT_NAMES) {
          rejectSchema(valuePath, `lists more than ${MAX_OBJECT_NAMES} names. List fewer.`)
        }
        if (key === 'prefixItems' && sizeOf(each) > MAX_TUPLE_ITEMS) {
          rejectSchema(
            valuePath,
            `has more than ${MAX_TUPLE_ITEMS} items. Use \`items\`, or a shorter tuple.`,
          )
        }
        waiting.push({ part: each, path: valuePath })
      }
    }
    values += sizeOf(part)
    if (values > MAX_SCHEMA_VALUES)
      rejectSchema(path, `has more than ${MAX_SCHEMA_VALUES} parts. Make it smaller.`)
  }
}

function assertShortNames(names: readonly unknown[], path: string): void {
  if (names.some((name) => typeof name === 'string' && name.length > MAX_NAME_CHARACTERS))
    rejectSchema(path, `has a name of more than ${MAX_NAME_CHARACTERS} characters. Shorten it.`)
}

const sizeOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Object.keys(value).length : 0
