/** Marks the texts of a conversation, so that each message can be located in the prompt. */

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

/** Message of a template, whose content may be a list of texts and images. */
interface Message {
  content: unknown
  tool_calls?: readonly Call[]
}

interface Call {
  function: { name: string }
}

/** Marks for one conversation, of a private-use character that `text` does not contain. */
export class MessageMarkers {
  readonly #character: string

  constructor(text: string) {
    let code = 0xf8ff
    while (text.includes(String.fromCharCode(code))) code -= 1
    this.#character = String.fromCharCode(code)
  }

  /** Returns a copy of the template variables with marks around contents and after names. */
  insert(variables: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const messages = variables['messages'] as readonly Message[]
    const tools = variables['tools'] as readonly Call[] | undefined
    const markOf = (owner: number): string => `${this.#character}${owner}${this.#character}`
    return {
      ...variables,
      messages: messages.map((message, owner) => markMessage(message, markOf(owner))),
      ...(tools && { tools: tools.map((tool) => markCall(tool, markOf(messages.length))) }),
    }
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

function markMessage(message: Message, mark: string): Message {
  const { content, tool_calls: calls } = message
  return {
    ...message,
    ...(typeof content === 'string' && { content: surround(content, mark) }),
    ...(Array.isArray(content) && {
      content: content.map((part: { text?: string }) =>
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
