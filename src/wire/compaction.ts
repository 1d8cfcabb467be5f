/**
 * Compaction of a conversation: the model summarizes it, and an item holds the summary. The item is
 * opaque to clients, as those of vendors are. Only its text is encoded, it is not encrypted.
 */
import { InoriginError } from '../error.ts'
import type {
  AcceptedEvent,
  ChatMessage,
  Generation,
  GenerationEvent,
  GenerationRequest,
  StoredItem,
  Usage,
} from '../types/index.ts'
import { fromBase64, toBase64 } from '../values/bytes.ts'
import { shorten } from '../values/text.ts'

/** Beginning of the content of our items. Its number changes if the form of the rest does. */
const SUMMARY_PREFIX = 'inorigin.1.'

/** Returns the compaction item with this summary. */
export const toCompactionItem = (id: string, summary: string): StoredItem => ({
  type: 'compaction',
  id,
  encrypted_content: SUMMARY_PREFIX + toBase64(new TextEncoder().encode(summary)),
})

/** Returns the summary of a compaction item; `null` for an item of another server. */
export function readSummary({ encrypted_content: text }: { encrypted_content: string }) {
  if (!text.startsWith(SUMMARY_PREFIX)) return null
  const encoded = text.slice(SUMMARY_PREFIX.length)
  if (!/^[\w+/]*={0,2}$/.test(encoded)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(encoded))
  } catch {
    return null
  }
}

/** Share of the context that a summary may have, and its bounds in tokens. They are guesses. */
const SUMMARY_SHARE = 1 / 4
const MIN_SUMMARY_TOKENS = 64
const MAX_SUMMARY_TOKENS = 1_024
/** Context in tokens of a model that does not state its own. */
const DEFAULT_CONTEXT_TOKENS = 4_096
/** Tokens of the instructions and of the chat template around the conversation. It is a guess. */
const PROMPT_TOKENS = 160
/** Characters per token. English text has about four. With fewer, a part is divided again. */
const CHARACTERS_PER_TOKEN = 3
/** Maximum number of parts of a long conversation. What comes before them is left out. */
const MAX_PARTS = 8
/** Length in characters below which a part that does not fit is not divided again. */
const MIN_PART_CHARACTERS = 200
/** Maximum length in characters of one message in the text to summarize. */
const MAX_MESSAGE_CHARACTERS = 4_000

const INSTRUCTIONS =
  'You summarize a conversation, so that an assistant can continue it without having read it. ' +
  'Keep the aims of the user, decisions, facts, names, numbers, paths of files, results of tools ' +
  'and what is left to do. Write short plain text, without an introduction.'

/**
 * Has the model summarize the messages, apart from those of the system. Yields the events about its
 * work, then the summary as one text and the usage of all passes. A conversation that exceeds the
 * context is summarized part by part. `contextTokens` is the context of the model, if it is known.
 */
export async function* summarize(
  { model, messages, route }: Pick<GenerationRequest, 'model' | 'messages' | 'route'>,
  contextTokens: number | undefined,
  generate: (request: GenerationRequest) => Promise<Generation>,
): AsyncGenerator<AcceptedEvent | GenerationEvent> {
  const context = contextTokens ?? DEFAULT_CONTEXT_TOKENS
  const maxTokens = Math.round(
    Math.min(Math.max(context * SUMMARY_SHARE, MIN_SUMMARY_TOKENS), MAX_SUMMARY_TOKENS),
  )
  const roomTokens = context - 2 * maxTokens - PROMPT_TOKENS
  let partCharacters = Math.max(roomTokens * CHARACTERS_PER_TOKEN, MIN_PART_CHARACTERS)
  let rest = writeTranscript(messages).slice(-MAX_PARTS * partCharacters)
  let summary = ''
  let isStarted = false
  const usage: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }
  do {
    const part = rest.slice(0, partCharacters)
    const request: GenerationRequest = {
      model,
      messages: [
        { role: 'system', content: INSTRUCTIONS },
        { role: 'user', content: writePrompt(summary, part) },
      ],
      maxTokens,
      sampling: {},
      stop: [],
      reasoningBudget: 0,
      ...(route && { route }),
    }
    let written = ''
    try {
      for await (const event of (await generate(request)).events) {
        if (event.type === 'text') written += event.text
        else if (event.type === 'finish') addUsage(usage, event.usage)
        else if (event.type === 'start' && !isStarted) {
          isStarted = true
          yield event
        } else if (isStatus(event)) yield event
      }
    } catch (error) {
      if (!isTooLong(error) || part.length <= MIN_PART_CHARACTERS) throw error
      partCharacters = Math.ceil(part.length / 2)
      rest = rest.slice(-MAX_PARTS * partCharacters)
      continue
    }
    summary = written.trim()
    rest = rest.slice(part.length)
  } while (rest !== '')
  yield { type: 'text', text: summary }
  yield { type: 'finish', reason: 'stop', stopSequence: null, usage }
}

type StatusEvent = Extract<
  AcceptedEvent | GenerationEvent,
  { type: 'accepted' | 'progress' | 'heartbeat' | 'served_by' }
>

const isStatus = (event: AcceptedEvent | GenerationEvent): event is StatusEvent =>
  ['accepted', 'progress', 'heartbeat', 'served_by'].includes(event.type)

const isTooLong = (error: unknown): boolean =>
  error instanceof InoriginError && error.code === 'context_length_exceeded'

type Counts = Omit<Usage, 'drafts'>

function addUsage(total: Counts, added: Counts): void {
  for (const name of Object.keys(total) as (keyof Counts)[]) total[name] += added[name]
}

function writePrompt(summary: string, part: string): string {
  const before = summary === '' ? '' : `Summary of what came before:\n${summary}\n\n`
  return `${before}Conversation:\n${part}\n\nWrite the summary of all of it.`
}

/** Writes messages as plain text, without those of the system. */
function writeTranscript(messages: readonly ChatMessage[]): string {
  const cut = (text: string): string => shorten(text, MAX_MESSAGE_CHARACTERS)
  return messages
    .flatMap((message): string[] => {
      switch (message.role) {
        case 'system':
          return []
        case 'user': {
          const images = message.images?.map(() => '[image]') ?? []
          return [`User: ${[...images, cut(message.content)].join(' ')}`]
        }
        case 'tool':
          return [`Result of ${message.name || 'a tool'}: ${cut(message.content)}`]
        default: {
          const calls = (message.toolCalls ?? []).map(
            ({ name, arguments: text }) => `Assistant calls ${name}: ${cut(text)}`,
          )
          return [...(message.content ? [`Assistant: ${cut(message.content)}`] : []), ...calls]
        }
      }
    })
    .join('\n')
}

/** Length in characters of the newest messages of the user that stay as they are. It is a guess. */
const MAX_KEPT_CHARACTERS = 2_000

/**
 * Returns the items that stay as they are: instructions and the newest messages of the user, which
 * come before the summary, and calls without a result, which come after it.
 */
export function keepItems(items: readonly StoredItem[]) {
  const answered = new Set(
    items.flatMap((item) => (String(item['type']).endsWith('_output') ? [item['call_id']] : [])),
  )
  const isOpenCall = ({ type, call_id }: StoredItem): boolean =>
    (type === 'function_call' || type === 'custom_tool_call') && !answered.has(call_id)
  let room = MAX_KEPT_CHARACTERS
  const before = items
    .toReversed()
    .filter((item) => {
      if (item['type'] !== 'message') return false
      if (item['role'] === 'system' || item['role'] === 'developer') return true
      if (item['role'] !== 'user') return false
      const text = textOf(item)
      room -= text === null ? Infinity : text.length
      return room >= 0
    })
    .toReversed()
    .map((item): StoredItem => ({ ...item, status: 'completed' }))
  return { before, after: items.filter(isOpenCall) }
}

/** Returns the text of a message; `null` if it has parts that are no text. */
function textOf({ content }: StoredItem): string | null {
  const parts = Array.isArray(content) ? (content as { text?: unknown }[]) : []
  const texts = parts.map(({ text }) => text)
  return texts.every((text) => typeof text === 'string') ? texts.join('') : null
}
