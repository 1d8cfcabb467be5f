/**
 * Custom tools, which are called with a text, and names of results. For the model, the text is the
 * argument `input` of a function. Who writes the events of an answer turns it into the text again.
 */
import type { ChatMessage, GenerationEvent, JsonSchema, Tool, ToolInput } from '../types/index.ts'

/** Maximum length in characters of a grammar in the prompt. Longer ones cost more than they help. */
const MAX_PROMPT_GRAMMAR_CHARACTERS = 2_000

/**
 * Returns the schema of a tool's arguments. The text of a custom tool has its regular expression as
 * pattern. A Lark grammar is only described: no schema can keep it.
 */
export function parametersOf({ parameters, input }: Tool): JsonSchema {
  if (!input) return parameters
  return {
    type: 'object',
    properties: { input: { type: 'string', ...toKeywords(input) } },
    required: ['input'],
    additionalProperties: false,
  }
}

function toKeywords(input: ToolInput): object {
  if (input.type === 'text') return {}
  const { syntax, definition } = input
  if (syntax === 'regex') return { pattern: anchor(definition) }
  if (definition.length > MAX_PROMPT_GRAMMAR_CHARACTERS) return {}
  return { description: `A text of this Lark grammar:\n${definition}` }
}

/** Returns a pattern for the whole text. An invalid one is left as it is, and refused later. */
function anchor(pattern: string): string {
  const whole = `^(?:${pattern})$`
  return compiles(whole) && !compiles(pattern) ? pattern : whole
}

function compiles(pattern: string): boolean {
  try {
    return Boolean(new RegExp(pattern, 'u'))
  } catch {
    return false
  }
}

type CallEvent = Extract<GenerationEvent, { type: 'tool_call' | 'tool_arguments' }>

/** Creates a function that marks calls of custom tools, and replaces their arguments by the text. */
export function createCallMarker(tools: readonly Tool[]): (event: CallEvent) => CallEvent {
  const names = new Set(tools.flatMap(({ name, input }) => (input ? [name] : [])))
  let reader: InputReader | null = null
  return (event) => {
    if (event.type === 'tool_arguments')
      return reader ? { ...event, text: reader.push(event.text) } : event
    reader = names.has(event.name) ? new InputReader() : null
    return reader ? { ...event, isCustom: true } : event
  }
}

const INPUT_START = /^\s*\{\s*"input"\s*:\s*"/

class InputReader {
  /** JSON that is not read yet: the beginning, or an escape sequence that is not complete. */
  #held = ''
  #state: 'before' | 'inside' | 'after' = 'before'

  /** Returns the part of the text that is known with more of the JSON. */
  push(json: string): string {
    if (this.#state === 'after') return ''
    const text = this.#held + json
    let from = 0
    if (this.#state === 'before') {
      from = INPUT_START.exec(text)?.[0].length ?? 0
      if (from > 0) this.#state = 'inside'
      else {
        this.#held = text
        return ''
      }
    }
    let to = from
    while (to < text.length && text[to] !== '"') {
      const length = text[to] !== '\\' ? 1 : text[to + 1] === 'u' ? 6 : 2
      if (to + length > text.length) break
      to += length
    }
    if (text[to] === '"') this.#state = 'after'
    this.#held = text.slice(to)
    return unescape(text.slice(from, to))
  }
}

/** Returns the text of a part of a JSON string. Another server may write one that is no JSON. */
function unescape(part: string): string {
  try {
    return JSON.parse(`"${part}"`) as string
  } catch {
    return part
  }
}

/** Adds the names of the called tools to results without a name. */
export function withToolNames(messages: readonly ChatMessage[]): ChatMessage[] {
  const names = new Map<string, string>()
  return messages.map((message): ChatMessage => {
    if (message.role === 'assistant')
      for (const { id, name } of message.toolCalls ?? []) names.set(id, name)
    if (message.role !== 'tool' || message.name !== '') return message
    return { ...message, name: names.get(message.toolCallId) ?? '' }
  })
}
