/** Counts the tokens of messages. */
import { type Endpoint, fetchTokenCount } from './endpoint.ts'
import { readCode } from './errors.ts'
import type { LanguageModelTool } from './types.ts'
import { type HistoryMessage, toResponsesItems, toResponsesTools } from './wire-messages.ts'

/** Codes of errors that say that a prompt is too long to count at once. */
const TOO_LONG = new Set(['context_length_exceeded', 'request_too_large'])

/** Length in characters of a text that is not divided any more. */
const MIN_CHARACTERS = 256

/**
 * Resolves with the number of tokens of the messages, with those that surround them. The server
 * counts only a few times the context, so longer prompts are counted in pieces.
 */
export async function countTokens(
  endpoint: Endpoint,
  messages: readonly HistoryMessage[],
  signal: AbortSignal,
): Promise<number> {
  if (messages.length === 0) return 0
  try {
    return await fetchTokenCount(endpoint, { input: toResponsesItems(messages) }, signal)
  } catch (thrown) {
    const halves = TOO_LONG.has(readCode(thrown) ?? '') ? split(messages) : undefined
    if (!halves) throw thrown
    const [first, second] = halves
    const count = await countTokens(endpoint, first, signal)
    return count + (await countTokens(endpoint, second, signal))
  }
}

/** Resolves with the number of tokens that the tools add to a prompt. */
export async function countToolTokens(
  endpoint: Endpoint,
  tools: readonly LanguageModelTool[],
  signal: AbortSignal,
): Promise<number> {
  if (tools.length === 0) return 0
  const input = 'Hello'
  const without = await fetchTokenCount(endpoint, { input }, signal)
  const body = { input, tools: toResponsesTools(tools) }
  return (await fetchTokenCount(endpoint, body, signal)) - without
}

type Halves = [readonly HistoryMessage[], readonly HistoryMessage[]]

/** Divides messages, or the text of the only one. Returns `undefined` if neither is possible. */
function split(messages: readonly HistoryMessage[]): Halves | undefined {
  const [only] = messages
  if (messages.length > 1 || !only) {
    const middle = Math.ceil(messages.length / 2)
    return [messages.slice(0, middle), messages.slice(middle)]
  }
  if (!('content' in only)) return undefined
  const { content } = only
  if (content.length > 1) {
    const middle = Math.ceil(content.length / 2)
    return [
      [{ ...only, content: content.slice(0, middle) }],
      [{ ...only, content: content.slice(middle) }],
    ]
  }
  const [part] = content
  if (part?.type !== 'text' || !('value' in part)) return undefined
  const text = String(part.value)
  if (text.length < MIN_CHARACTERS) return undefined
  // Tokens seldom cross the beginning of a word.
  const space = text.lastIndexOf(' ', text.length / 2)
  const middle = space > 0 ? space : Math.ceil(text.length / 2)
  const withText = (value: string): HistoryMessage[] => [
    { ...only, content: [{ type: 'text', value }] },
  ]
  return [withText(text.slice(0, middle)), withText(text.slice(middle))]
}
