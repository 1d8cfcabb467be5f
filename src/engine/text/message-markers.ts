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
  const markerCharacter = String.fromCharCode(code)
  const markerOf = (owner: number): string => `${markerCharacter}${owner}${markerCharacter}`
  const surround = (content: string, owner: number): string => {
    const trimmed = content.trim()
    if (trimmed === '') return content
    const from = content.length - content.trimStart().length
    const parts = [content.slice(0, from), trimmed, content.slice(from + trimmed.length)]
    return parts.join(markerOf(owner))
  }
  const appendTo = <T extends Call>(call: T, owner: number): T => ({
    ...call,
    function: { ...call.function, name: call.function.name + markerOf(owner) },
  })

  const insert: MessageMarkers['insert'] = (variables) => {
    const messages = variables['messages'] as readonly Message[]
    const tools = variables['tools'] as readonly Call[] | undefined
    return {
      ...variables,
      messages: messages.map((message, owner) => ({
        ...message,
        ...(typeof message.content === 'string' && { content: surround(message.content, owner) }),
        ...(Array.isArray(message.content) && {
          content: message.content.map((part: Part) =>
            part.text === undefined ? part : { ...part, text: surround(part.text, owner) },
          ),
        }),
        ...(message.tool_calls && {
          tool_calls: message.tool_calls.map((call) => appendTo(call, owner)),
        }),
      })),
      ...(tools && { tools: tools.map((tool) => appendTo(tool, messages.length)) }),
    }
  }

  const extract: MessageMarkers['extract'] = (rendered) => {
    const positions: { owner: number; at: number }[] = []
    let removed = 0
    const pattern = new RegExp(`${markerCharacter}(\\d+)${markerCharacter}`, 'g')
    const textWithoutMarkers = rendered.replace(
      pattern,
      (marker: string, owner: string, at: number) => {
        positions.push({ owner: Number(owner), at: at - removed })
        removed += marker.length
        return ''
      },
    )
    const ends: LocatedMessages['ends'] = (end) =>
      positions.flatMap(({ owner, at }, index) => {
        const next = positions[index + 1]
        if (next?.owner === owner) return []
        return [{ from: at, to: Math.max(at, next?.at ?? end) }]
      })
    return {
      text: textWithoutMarkers,
      positions,
      owners: new Set(positions.map(({ owner }) => owner)),
      ends,
    }
  }
  return { insert, extract }
}
