/** JSON of strangers: where a text stops being it, and how deep it may be nested. */

/** How often objects and arrays may lie in each other; what walks them is no deeper. */
export const MAX_DEPTH = 100

/** The first keys on the way to what lies too deep; `undefined` where nothing does. */
export function tooDeep(value: unknown): Array<string | number> | undefined {
  const NAMED = 4
  // By hand: a stack of calls ends sooner than what a body may hold.
  const waiting: Array<{ value: unknown; depth: number; path: Array<string | number> }> = []
  const push = (inner: unknown, depth: number, path: Array<string | number>): void => {
    if (typeof inner === 'object' && inner !== null) waiting.push({ value: inner, depth, path })
  }
  push(value, 1, [])
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value: holder, depth, path } = next
    if (depth > MAX_DEPTH) return path
    const isList = Array.isArray(holder)
    for (const [key, inner] of Object.entries(holder as object)) {
      const step = isList ? Number(key) : key
      push(inner, depth + 1, path.length < NAMED ? [...path, step] : path)
    }
  }
  return undefined
}

/** What may come next: a value, a name or a sign. `first`: or the end of what has just begun. */
type Due = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma'

const SPACE = /[ \t\n\r]*/y
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** Whether a character stands for itself in a string. */
const isPlain = (sign: string | undefined): boolean =>
  sign !== undefined && sign >= ' ' && sign !== '"' && sign !== '\\'

/** How many characters of a text that is no JSON could be the beginning of some. */
export function placeOfFault(text: string): number {
  let at = 0
  let due: Due = 'value'
  const open: Array<'}' | ']'> = []

  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const { length } = pattern.exec(text)?.[0] ?? ''
    at += length
    return length > 0
  }
  /** Past a string; where it is none, at what is wrong with it. */
  const string = (): boolean => {
    at += 1
    do while (isPlain(text[at])) at += 1
    while (skip(ESCAPE))
    if (text[at] !== '"') return false
    at += 1
    return true
  }

  for (;;) {
    skip(SPACE)
    const sign = text[at]
    if (sign === undefined) return at
    if (due === 'colon') {
      if (sign !== ':') return at
      at += 1
      due = 'value'
    } else if (sign === open.at(-1) && (due === 'comma' || due.startsWith('first'))) {
      at += 1
      open.pop()
      due = 'comma'
    } else if (due === 'comma') {
      if (sign !== ',' || open.length === 0) return at
      at += 1
      due = open.at(-1) === '}' ? 'name' : 'value'
    } else if (due.endsWith('name')) {
      if (sign !== '"' || !string()) return at
      due = 'colon'
    } else if (sign === '{' || sign === '[') {
      at += 1
      open.push(sign === '{' ? '}' : ']')
      due = sign === '{' ? 'first name' : 'first value'
    } else {
      if (sign === '"' ? !string() : !skip(SCALAR)) return at
      due = 'comma'
    }
  }
}
