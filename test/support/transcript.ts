/** The answer as a client puts it together, in the same form for all wire styles. */
import { checkMessageStream } from './anthropic-grammar.ts'
import type { Style } from './generation-cases.ts'
import { checkChatStream } from './openai-grammar.ts'
import { checkResponseStream } from './responses-grammar.ts'

export interface Transcript {
  reasoning: string
  text: string
  calls: { name: string; arguments: string }[]
  finish: unknown
  /** Tokens of the prompt, and of the answer; `null` where the answer does not say. */
  tokens: (number | null)[]
  /** The error frame with which it ended; `null` if there is none. */
  error: unknown
}

interface Options {
  stream: boolean
  /** `true` if the client left before the end. */
  cut?: boolean
}

/** Parses the whole body of an answer. Throws on the first thing that its format does not allow. */
export function toTranscript(style: Style, raw: string, { stream, cut }: Options): Transcript {
  if (!stream) return READERS[style](cut ? {} : JSON.parse(raw))
  return STREAM_READERS[style](raw, cut ?? false)
}

const STREAM_READERS: Readonly<Record<Style, (raw: string, cut: boolean) => Transcript>> = {
  chat(raw, cut) {
    const seen = checkChatStream(raw, { includeUsage: true, cut })
    return {
      reasoning: seen.reasoning,
      text: seen.content,
      calls: seen.toolCalls.map(toCall),
      finish: seen.finishReason,
      tokens: [toCount(seen.usage?.['prompt_tokens']), toCount(seen.usage?.['completion_tokens'])],
      error: seen.error,
    }
  },
  messages(raw, cut) {
    const seen = checkMessageStream(raw, { cut })
    const blocks = seen.blocks
    return {
      reasoning: join(blocks.filter(({ type }) => type === 'thinking')),
      text: seen.text,
      calls: blocks
        .filter(({ type }) => type === 'tool_use')
        .map(({ name, text }) => ({ name, arguments: text })),
      finish: seen.stopReason,
      tokens: messageTokens({ ...seen.startUsage, ...seen.usage }),
      error: seen.error,
    }
  },
  responses(raw, cut) {
    const seen = checkResponseStream(raw, { cut })
    const usage = seen.response?.['usage'] as Fields | undefined
    return {
      reasoning: join(seen.items.filter(({ type }) => type === 'reasoning')),
      text: join(seen.items.filter(({ type }) => type === 'message')),
      calls: seen.items
        .filter(({ type }) => type === 'function_call')
        .map(({ name, text }) => ({ name, arguments: text })),
      finish: seen.response?.['status'] ?? null,
      tokens: [toCount(usage?.['input_tokens']), toCount(usage?.['output_tokens'])],
      error: seen.error,
    }
  },
}

type Fields = Record<string, unknown>

/** The parts of the three styles' JSON bodies that are compared. */
interface Body {
  error?: unknown
  choices?: { message: Fields; finish_reason: string }[]
  content?: { type: string; text?: string; thinking?: string; name?: string; input?: unknown }[]
  stop_reason?: string
  output?: {
    type: string
    name?: string
    arguments?: string
    content?: { text: string }[]
    summary?: { text: string }[]
  }[]
  status?: string
  usage?: Fields
}

const READERS: Readonly<Record<Style, (body: Body) => Transcript>> = {
  chat({ choices: [choice] = [], usage, error }) {
    const calls = (choice?.message['tool_calls'] ?? []) as {
      function: { name: string; arguments: string }
    }[]
    return {
      reasoning: toText(choice?.message['reasoning_content']),
      text: toText(choice?.message['content']),
      calls: calls.map((call) => toCall(call.function)),
      finish: choice?.finish_reason ?? null,
      tokens: [toCount(usage?.['prompt_tokens']), toCount(usage?.['completion_tokens'])],
      error: error ?? null,
    }
  },
  messages({ content = [], usage, error, stop_reason: reason }) {
    return {
      reasoning: content.map(({ thinking = '' }) => thinking).join(''),
      text: content.map(({ text = '' }) => text).join(''),
      calls: content
        .filter(({ type }) => type === 'tool_use')
        .map(({ name = '', input }) => ({ name, arguments: JSON.stringify(input) })),
      finish: reason ?? null,
      tokens: usage ? messageTokens(usage) : [null, null],
      error: error ?? null,
    }
  },
  responses({ output = [], usage, error, status }) {
    return {
      reasoning: output
        .flatMap(({ summary = [] }) => summary)
        .map(({ text }) => text)
        .join(''),
      text: output
        .flatMap(({ content = [] }) => content)
        .map(({ text }) => text)
        .join(''),
      calls: output
        .filter(({ type }) => type === 'function_call')
        .map(({ name = '', arguments: args = '' }) => ({ name, arguments: args })),
      finish: status ?? null,
      tokens: [toCount(usage?.['input_tokens']), toCount(usage?.['output_tokens'])],
      error: error ?? null,
    }
  },
}

const toCall = ({ name, arguments: args }: { name: string; arguments: string }) => ({
  name,
  arguments: args,
})

const join = (parts: readonly { text: string }[]): string => parts.map(({ text }) => text).join('')

const toText = (value: unknown): string => (typeof value === 'string' ? value : '')

const toCount = (value: unknown): number | null => (typeof value === 'number' ? value : null)

/** The tokens that come from the prefix cache are counted apart, and another host has another cache. */
function messageTokens(usage: Fields): (number | null)[] {
  const input = toCount(usage['input_tokens'])
  const cached = toCount(usage['cache_read_input_tokens']) ?? 0
  return [input === null ? null : input + cached, toCount(usage['output_tokens'])]
}
