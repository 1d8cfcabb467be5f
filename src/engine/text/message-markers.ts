/** Marks the texts of a conversation, so that each message can be located in the prompt. */
import { Dict, type Value } from '../jinja/index.ts'

/** A range of positions in a text, in UTF-16 units. */
export interface TextRange {
  from: number
  to: number
}

/** Position of a mark. The owner is the index of a message; that of tools comes after the last. */
interface MarkPosition {
  owner: number
  at: number
}

/** Marks for one conversation, of a private-use character that `text` does not contain. */
export class MessageMarkers {
  readonly #character: string

  constructor(text: string) {
    let code = 0xf8ff
    while (text.includes(String.fromCharCode(code))) code -= 1
    this.#character = String.fromCharCode(code)
  }

  /** Returns the template variables with marks around contents and after names. */
  insert(variables: ReadonlyMap<string, Value>): Map<string, Value> {
    const messages = toList(variables.get('messages'))
    const markOf = (owner: number): string => `${this.#character}${owner}${this.#character}`
    const tools = variables.get('tools')
    return new Map<string, Value>([
      ...variables,
      ['messages', messages.map((message, owner) => markMessage(message, markOf(owner)))],
      ...(Array.isArray(tools)
        ? [['tools', tools.map((tool) => markCall(tool, markOf(messages.length)))] as const]
        : []),
    ])
  }

  /** Removes the marks from a rendered text and returns their positions, in order. */
  extract(rendered: string): { text: string; positions: readonly MarkPosition[] } {
    const positions: MarkPosition[] = []
    let removed = 0
    const pattern = new RegExp(`${this.#character}(\\d+)${this.#character}`, 'g')
    const text = rendered.replace(pattern, (mark: string, owner: string, at: number) => {
      positions.push({ owner: Number(owner), at: at - removed })
      removed += mark.length
      return ''
    })
    return { text, positions }
  }
}

/**
 * Returns the ranges in which messages end: each from the last mark of one owner to the first mark
 * of the next, the last one up to `end`.
 */
export const findEnds = (positions: readonly MarkPosition[], end: number): TextRange[] =>
  positions.flatMap(({ owner, at }, index) => {
    const next = positions[index + 1]
    return next?.owner === owner ? [] : [{ from: at, to: Math.max(at, next?.at ?? end) }]
  })

const toList = (value: Value | undefined): Value[] => (Array.isArray(value) ? value : [])

/** Returns a dict with some of its values changed; any other value as it is. */
function change(value: Value, changes: Readonly<Record<string, (value: Value) => Value>>): Value {
  if (!(value instanceof Dict)) return value
  return new Dict(
    value.entries().map(([key, item]) => {
      const edit = typeof key === 'string' && Object.hasOwn(changes, key) ? changes[key] : undefined
      return [key, edit ? edit(item) : item] as const
    }),
  )
}

function markMessage(message: Value, mark: string): Value {
  const markText = (text: Value): Value => (typeof text === 'string' ? surround(text, mark) : text)
  return change(message, {
    content: (content) =>
      Array.isArray(content)
        ? content.map((part) => change(part, { text: markText }))
        : markText(content),
    tool_calls: (calls) => toList(calls).map((call) => markCall(call, mark)),
  })
}

/** Puts marks around a text, inside of its white space. An empty text gets none. */
function surround(content: string, mark: string): string {
  const trimmed = content.trim()
  if (trimmed === '') return content
  const from = content.length - content.trimStart().length
  return [content.slice(0, from), trimmed, content.slice(from + trimmed.length)].join(mark)
}

/** Marks the name of a call or of a tool. */
const markCall = (call: Value, mark: string): Value =>
  change(call, {
    function: (definition) =>
      change(definition, { name: (name) => (typeof name === 'string' ? name + mark : name) }),
  })
