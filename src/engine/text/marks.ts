/**
 * Puts marks into the texts of a conversation, so that each message can be located in the rendered
 * prompt.
 */

/** A range of positions in a text, in UTF-16 units. */
export interface Range {
  from: number
  to: number
}

/** Marks for one conversation. */
export interface Marks {
  /** Returns a copy of the template variables with marks around contents and after names. */
  put(variables: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Removes the marks from a rendered text and returns their positions. */
  take(marked: string): Found
}

/** A rendered text and the positions of its marks. */
export interface Found {
  /** Text without marks. */
  text: string
  /**
   * Owner and position of each mark, in order. The owner is the index of a message; tools have the
   * index after the last message.
   */
  places: readonly { owner: number; at: number }[]
  /** Owners with at least one mark. */
  owners: ReadonlySet<number>
  /**
   * Returns the ranges in which messages end: each from the last mark of one owner to the first
   * mark of the next, the last one up to `end`.
   */
  ends(end: number): Range[]
}

interface Message {
  content: unknown
  tool_calls?: readonly Call[]
}

interface Call {
  function: { name: string }
}

/** Creates marks from a private-use character that `text` does not contain. */
export function createMarks(text: string): Marks {
  let code = 0xf8ff
  while (text.includes(String.fromCharCode(code))) code -= 1
  const sign = String.fromCharCode(code)
  const markOf = (owner: number): string => `${sign}${owner}${sign}`
  const around = (content: string, owner: number): string => {
    const said = content.trim()
    if (said === '') return content
    const from = content.length - content.trimStart().length
    const parts = [content.slice(0, from), said, content.slice(from + said.length)]
    return parts.join(markOf(owner))
  }
  const behind = <T extends Call>(call: T, owner: number): T => ({
    ...call,
    function: { ...call.function, name: call.function.name + markOf(owner) },
  })

  const put: Marks['put'] = (variables) => {
    const messages = variables['messages'] as readonly Message[]
    const tools = variables['tools'] as readonly Call[] | undefined
    return {
      ...variables,
      messages: messages.map((message, owner) => ({
        ...message,
        ...(typeof message.content === 'string' && { content: around(message.content, owner) }),
        ...(message.tool_calls && {
          tool_calls: message.tool_calls.map((call) => behind(call, owner)),
        }),
      })),
      ...(tools && { tools: tools.map((tool) => behind(tool, messages.length)) }),
    }
  }

  const take: Marks['take'] = (marked) => {
    const places: { owner: number; at: number }[] = []
    let removed = 0
    const pattern = new RegExp(`${sign}(\\d+)${sign}`, 'g')
    const bare = marked.replace(pattern, (mark: string, owner: string, at: number) => {
      places.push({ owner: Number(owner), at: at - removed })
      removed += mark.length
      return ''
    })
    const ends: Found['ends'] = (end) =>
      places.flatMap(({ owner, at }, index) => {
        const next = places[index + 1]
        if (next?.owner === owner) return []
        return [{ from: at, to: Math.max(at, next?.at ?? end) }]
      })
    return { text: bare, places, owners: new Set(places.map(({ owner }) => owner)), ends }
  }
  return { put, take }
}
