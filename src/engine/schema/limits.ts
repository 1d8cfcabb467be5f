/** Schemas so large that making a grammar of them would take longer than anybody waits. */
import type { JsonSchema } from '../../types/index.ts'
import { isObject, refuse, under } from './node.ts'

/** What an object may list by name; the time it takes grows with the square. */
const MOST_NAMES = 500
/** Elements of a tuple: each lies inside the one before it, so that a longer one would overflow the stack. */
const MAX_TUPLE_ITEMS = 500
/** Keywords, names and values in all. */
const MOST_VALUES = 20_000

/** Refuses what is larger, naming its place. Looks at each part once, however deep it lies. */
export function checkLimits(schema: JsonSchema, path: string): void {
  const waiting: Array<{ part: unknown; path: string }> = [{ part: schema, path }]
  let values = 0
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { part, path: here } = next
    if (Array.isArray(part)) {
      part.forEach((each: unknown, index) => waiting.push({ part: each, path: under(here, index) }))
    } else if (isObject(part)) {
      for (const [key, each] of Object.entries(part)) {
        const place = under(here, key)
        if ((key === 'properties' || key === 'required') && sizeOf(each) > MOST_NAMES) {
          refuse(place, `lists more than ${MOST_NAMES} names, which is too many to be kept.`)
        }
        if (key === 'prefixItems' && sizeOf(each) > MAX_TUPLE_ITEMS) {
          refuse(
            place,
            `has more than ${MAX_TUPLE_ITEMS} items. Use \`items\`, or a shorter tuple.`,
          )
        }
        waiting.push({ part: each, path: place })
      }
    }
    values += sizeOf(part)
    if (values > MOST_VALUES) refuse(path, `has more than ${MOST_VALUES} parts. Make it smaller.`)
  }
}

const sizeOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Object.keys(value).length : 0
