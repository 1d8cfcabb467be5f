/**
 * Puts marks into the texts of a conversation, so that each message can be located in the rendered
 * prompt.
 */

/** A range of positions in a text, in UTF-16 units. */
export interface TextRange {
  from: number
  to: number
}

/** Marks for one conversation. */
export interface MessageMarkers {
  /** Returns a copy of the template variables with marks around contents and after names. */
  insert(variables: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Removes the marks from a rendered text and returns their positions. */
  extract(rendered: string): LocatedMessages
}

/** A rendered text and the positions of its marks. */
interface LocatedMessages {
  /** Text without marks. */
  text: string
  /**
   * Owner and position of each mark, in order. The owner is the index of a message; tools have the
   * index after the last message.
   */
  positions: readonly { owner: number; at: number }[]
  /** Owners with at least one mark. */
  owners: ReadonlySet<number>
  /**
   * Returns the ranges in which messages end: each from the last mark of one owner to the first
   * mark of the next, the last one up to `end`.
   */
  ends(end: number): TextRange[]
}

interface Message {
  content: unknown
  tool_calls?: readonly Call[]
}

/** Part of a message: a text, or an image, which has none. */
interface Part {
  text?: string
}

interface Call {
  function: { name: string }
}

/** Creates marks from a private-use character that `text` does not contain. */
export function createMessageMarkers(text: string): MessageMarkers {
  let code = 0xf8ff
  while (text.includes(String.fromCharCode(code))) code -= 1
  const character = String.fromCharCode(code)
  const markOf = (owner: number): string => `${character}${owner}${character}`
  return {
    insert(variables) {
      const messages = variables['messages'] as readonly Message[]
      const tools = variables['tools'] as readonly Call[] | undefined
      const toolMark = markOf(messages.length)
      return {
        ...variables,
        messages: messages.map((message, owner) => markMessage(message, markOf(owner))),
        ...(tools && { tools: tools.map((tool) => markCall(tool, toolMark)) }),
      }
    },
    extract: (rendered) => locate(rendered, new RegExp(`${character}(\\d+)${character}`, 'g')),
  }
}

function markMessage(message: Message, mark: string): Message {
  const { content, tool_calls: calls } = message
  return {
    ...message,
    ...(typeof content === 'string' && { content: surround(content, mark) }),
    ...(Array.isArray(content) && {
      content: content.map((part: Part) =>
        part.text === undefined ? part : { ...part, text: surround(part.text, mark) },
      ),
    }),
    ...(calls && { tool_calls: calls.map((call) => markCall(call, mark)) }),
  }
}

/** Puts marks around a text, inside of its white space. An empty text gets none. */
function surround(content: string, mark: string): string {
  const trimmed = content.trim()
  if (trimmed === '') return content
  const from = content.length - content.trimStart().length
  return [content.slice(0, from), trimmed, content.slice(from + trimmed.length)].join(mark)
}

const markCall = <T extends Call>(call: T, mark: string): T => ({
  ...call,
  function: { ...call.function, name: call.function.name + mark },
})

/** Removes the marks. The group of `pattern` is the owner of a mark. */
function locate(rendered: string, pattern: RegExp): LocatedMessages {
  const positions: { owner: number; at: number }[] = []
  let removed = 0
  const text = rendered.replace(pattern, (mark: string, owner: string, at: number) => {
    positions.push({ owner: Number(owner), at: at - removed })
    removed += mark.length
    return ''
  })
  return {
    text,
    positions,
    owners: new Set(positions.map(({ owner }) => owner)),
    ends: (end) =>
      positions.flatMap(({ owner, at }, index) => {
        const next = positions[index + 1]
        if (next?.owner === owner) return []
        return [{ from: at, to: Math.max(at, next?.at ?? end) }]
      }),
  }
}
