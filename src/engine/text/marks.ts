/**
 * Marks in what is said in a conversation, by which each message is found again in the text that a
 * template makes of it.
 */

export interface Range {
  from: number
  to: number
}

export interface Marks {
  /** A copy of what templates read, with marks around contents and behind names. */
  put(variables: Readonly<Record<string, unknown>>): Record<string, unknown>
  take(marked: string): Found
}

export interface Found {
  /** Without its marks. */
  text: string
  /** Whose mark is where, in order: messages by index, and tools behind them. */
  places: readonly { owner: number; at: number }[]
  owners: ReadonlySet<number>
  /** Between the last mark of one and the first of the next, and up to `end`. */
  ends(end: number): Range[]
}

interface Message {
  content: unknown
  tool_calls?: readonly Call[]
}

interface Call {
  function: { name: string }
}

/** `text` is without marks. */
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
