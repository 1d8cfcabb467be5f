/**
 * Keeps the text of schemas that JSON.parse changes: it makes 1.0 and 1 the same number, cuts long
 * integers, and puts keys such as "2" first. Chat templates show models the schema as it was sent.
 */
import { readTokens } from '../values/json.ts'
import { isObjectOrArray } from '../values/objects.ts'

/** Keys of the schemas of tools in all styles. */
const SCHEMA_KEYS = new Set(['parameters', 'input_schema'])

/** A key that JavaScript puts before others. */
const NUMERIC_KEY = /^"\d+"$/

const texts = new WeakMap<object, string>()

/** Returns the text of a schema of a body, if its value differs; otherwise `undefined`. */
export const findSchemaText = (schema: object | null | undefined): string | undefined =>
  schema ? texts.get(schema) : undefined

/** An object or array of the text that is open. */
interface Open {
  value: unknown
  start: number
  /** Key or index of the value that is being read; `null` if a key comes next. */
  at: string | number | null
  isChanged: boolean
}

/** Keeps the texts of the schemas of a body whose values differ from their texts. */
export function keepSchemaTexts(text: string, body: unknown): void {
  if (!/"(?:parameters|input_schema)"\s*:/.test(text)) return
  const open: Open[] = []
  for (const { token, index } of readTokens(text)) {
    const top = open.at(-1)
    if (token === '{' || token === '[') {
      const parent = top?.value
      const value = top ? isObjectOrArray(parent) && (parent as never)[top.at ?? ''] : body
      open.push({ value, start: index, at: token === '[' ? 0 : null, isChanged: false })
    } else if (!top) continue
    else if (token === '}' || token === ']') {
      open.pop()
      const { value, start, isChanged } = top
      const outer = open.at(-1)
      if (!outer || !isChanged) continue
      outer.isChanged = true
      if (SCHEMA_KEYS.has(String(outer.at)) && isObjectOrArray(value))
        texts.set(value, text.slice(start, index + 1))
    } else if (token === ',') top.at = typeof top.at === 'number' ? top.at + 1 : null
    else if (!token.startsWith('"')) top.isChanged ||= isChangedNumber(token)
    else if (top.at === null) {
      top.at = JSON.parse(token) as string
      top.isChanged ||= NUMERIC_KEY.test(token)
    }
  }
}

/** Returns `true` if JSON.parse makes another number of a text than Python does. */
function isChangedNumber(token: string): boolean {
  const value = Number(token)
  return Number.isInteger(value) && (/[.e]/i.test(token) || !Number.isSafeInteger(value))
}
