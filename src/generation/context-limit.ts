/** Says what of a prompt takes how many tokens, when the prompt does not fit into the context. */
import { InoriginError } from '../error.ts'
import { type PromptParts, promptTooLong } from '../engine/text/token-bounds.ts'
import type { GenerationRequest } from '../types/index.ts'
import { parametersOf } from '../values/custom-tools.ts'

/**
 * Maximum number of UTF-16 units of a prompt whose parts are tokenized. That many took 0.6 s on one
 * core with the tokenizer of `@inorigin/guide`. The parts of a longer prompt are estimated.
 */
const MAX_COUNTED_CHARACTERS = 400_000
/** Maximum number of messages, calls and tools of such a prompt, because templates render each. */
const MAX_COUNTED_PIECES = 1_000

/**
 * Returns the error for a prompt that is too long with the tokens of its parts. Any other error is
 * returned unchanged. `count` returns the number of tokens of a request's prompt.
 */
export function explainTooLong(
  thrown: unknown,
  request: GenerationRequest,
  count: (request: GenerationRequest) => number,
): unknown {
  if (!(thrown instanceof InoriginError) || thrown.code !== 'context_length_exceeded') return thrown
  const { tokens, maximum } = thrown.details ?? {}
  if (typeof tokens !== 'number' || typeof maximum !== 'number') return thrown
  const characters = countCharacters(request)
  const isShort = sum(characters) <= MAX_COUNTED_CHARACTERS
  const isCounted = isShort && countPieces(request) <= MAX_COUNTED_PIECES
  const counted = isCounted ? countParts(request, count) : null
  if (counted && sum(counted) >= tokens)
    return promptTooLong(sum(counted), maximum, { isExact: true, parts: counted })
  const share = (part: number): number => Math.round((tokens * part) / Math.max(1, sum(characters)))
  const tools = share(characters.tools)
  const system = share(characters.system)
  const parts = { tools, system, history: Math.max(0, tokens - tools - system) }
  return promptTooLong(tokens, maximum, { isExact: false, parts })
}

const sum = ({ tools, system, history }: PromptParts): number => tools + system + history

/** Counts the parts by what the prompt is shorter without them; `null` if the template needs them. */
function countParts(
  request: GenerationRequest,
  count: (request: GenerationRequest) => number,
): PromptParts | null {
  const { tools: _tools, ...withoutTools } = request
  const { format: _format, ...unformatted } = withoutTools
  const messages = request.messages.filter(({ role }) => role !== 'system')
  try {
    const all = count(request)
    const rest = count(withoutTools)
    const history = messages.length > 0 ? count({ ...unformatted, messages }) : 0
    const isOrdered = all >= rest && rest >= history
    return isOrdered ? { tools: all - rest, system: rest - history, history } : null
  } catch {
    return null
  }
}

const countPieces = ({ messages, tools }: GenerationRequest): number =>
  messages.reduce(
    (count, message) =>
      count + 1 + (message.role === 'assistant' ? (message.toolCalls?.length ?? 0) : 0),
    tools?.tools.length ?? 0,
  )

function countCharacters({ messages, tools, responsePrefix }: GenerationRequest): PromptParts {
  const counts = { tools: 0, system: 0, history: responsePrefix?.length ?? 0 }
  for (const tool of tools?.choice === 'none' ? [] : (tools?.tools ?? []))
    counts.tools +=
      tool.name.length + (tool.description?.length ?? 0) + JSON.stringify(parametersOf(tool)).length
  for (const message of messages) {
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : []
    counts[message.role === 'system' ? 'system' : 'history'] +=
      message.content.length +
      calls.reduce((length, call) => length + call.name.length + call.arguments.length, 0)
  }
  return counts
}
