/** Has the model answer, and calls the tools that it asks for. */
import type { Endpoint } from './endpoint.ts'
import { domException } from './errors.ts'
import { type LanguageModelAnswer, type LanguageModelTool, LanguageModelToolCall } from './types.ts'
import {
  type HistoryMessage,
  textOf,
  toChatMessages,
  toChatTools,
  type ToolCallText,
} from './wire-messages.ts'

/** Number of answers with calls after which the model has to answer in words. */
const MAX_ROUNDS = 8

interface GenerateRequest {
  endpoint: Endpoint
  messages: readonly HistoryMessage[]
  constraint: ResponseConstraint | undefined
  tools: readonly LanguageModelTool[]
  sampling: object
  onText: (text: string) => void
  signal: AbortSignal
}

/** Resolves with the answer, and the messages to add, after all calls that the page executes. */
export async function generate(
  request: GenerateRequest,
): Promise<{ answer: LanguageModelAnswer; added: readonly HistoryMessage[] }> {
  const { endpoint, messages, constraint, tools, sampling, onText, signal } = request
  const last = messages.at(-1)
  /** The text that the answer continues; empty if there is none. */
  const prefix = last && 'prefix' in last && last.prefix ? textOf(last.content) : ''
  const asked = prefix === '' ? messages : messages.slice(0, -1)
  const added: HistoryMessage[] = []
  let written = ''
  for (let round = 0; ; round += 1) {
    const prefill = round === 0 ? prefix : ''
    // The prefix and the texts of all rounds together have to satisfy the constraint.
    const beginning = constraint ? constraint.normalize(prefix + written) : prefill
    const prefilled = beginning === '' ? [] : [toAssistantMessage(beginning)]
    const isLast = round >= MAX_ROUNDS
    const body = {
      ...sampling,
      messages: toChatMessages([...asked, ...added, ...prefilled]),
      ...(beginning !== '' && { continue_final_message: true }),
      ...(constraint && { response_format: constraint.format }),
      ...(tools.length > 0 && { tools: toChatTools(tools) }),
      ...(tools.length > 0 && isLast && { tool_choice: 'none' }),
    }
    const { text, calls, finishReason } = await endpoint.streamChat(body, onText, signal)
    written += text
    if (calls.length === 0 || isLast) {
      assertValid(constraint, prefix + written, finishReason)
      added.push(toAssistantMessage(prefill + text))
      return { answer: written, added }
    }
    added.push({ role: 'assistant', text: prefill + text, calls })
    const executed = calls.map(({ name }) => tools.find((tool) => tool.name === name)?.execute)
    if (executed.includes(undefined)) return { answer: toParts(text, calls), added }
    const results = await Promise.all(
      calls.map(async (call, index) => executed[index]?.(parseArguments(call) as never)),
    )
    signal.throwIfAborted()
    for (const [index, { id }] of calls.entries())
      added.push({ role: 'tool', callId: id, text: String(results[index]) })
  }
}

const toAssistantMessage = (text: string): HistoryMessage => ({
  role: 'assistant',
  prefix: false,
  content: [{ type: 'text', value: text }],
})

function assertValid(
  constraint: ResponseConstraint | undefined,
  answer: string,
  finishReason: string,
): void {
  if (!constraint || constraint.isValid(answer)) return
  const why = finishReason === 'length' ? ', because it reached the end of the context window' : ''
  throw domException('SyntaxError', `The answer does not satisfy responseConstraint${why}.`)
}

const parseArguments = (call: ToolCallText): object => JSON.parse(call.arguments || '{}') as object

function toParts(text: string, calls: readonly ToolCallText[]): LanguageModelAnswer {
  const parts = calls.map((call) => {
    const init = { callID: call.id, name: call.name, arguments: parseArguments(call) }
    return { type: 'tool-call' as const, value: new LanguageModelToolCall(init) }
  })
  return text === '' ? parts : [{ type: 'text', value: text }, ...parts]
}

/** A constraint of the page. */
export interface ResponseConstraint {
  hint: string
  format: object
  /** Returns the beginning of an answer as the server would write it. */
  normalize(beginning: string): string
  /** Returns `true` if the answer, with its prefix, satisfies the constraint. */
  isValid(answer: string): boolean
}

/** Reads a constraint. Throws a `NotSupportedError` for one that answers cannot be kept to. */
export const readConstraint = (constraint: object): ResponseConstraint =>
  Object.prototype.toString.call(constraint) === '[object RegExp]'
    ? readPattern(constraint as RegExp)
    : readSchema(constraint)

/**
 * The whole answer has to match. Text around a match would satisfy the pattern, too, but a model may
 * never come to the match then.
 */
function readPattern({ source, flags }: RegExp): ResponseConstraint {
  // Flags that do not change which texts match, or that the server supports.
  if (!/^[dgisu]*$/.test(flags)) {
    const what = `Regular expressions with the flags "${flags}" are not supported.`
    throw domException('NotSupportedError', `${what} Supported flags: d, g, i, s, u.`)
  }
  const kept = flags.replaceAll(/[dg]/g, '')
  const once = new RegExp(source, kept)
  return {
    hint: `Answer with a text that matches this regular expression: ${source}`,
    format: { type: 'regex', pattern: source, ...(kept !== '' && { flags: kept }) },
    normalize: (beginning) => beginning,
    isValid: (answer) => once.test(answer),
  }
}

function readSchema(constraint: object): ResponseConstraint {
  const text = toJson(constraint)
  const schema: unknown = JSON.parse(text)
  return {
    hint: `Answer with JSON that is valid against this JSON Schema: ${text}`,
    format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
    normalize: normalizeJson,
    isValid: isJson,
  }
}

function toJson(constraint: object): string {
  try {
    const text = JSON.stringify(constraint)
    if (text.startsWith('{')) return text
  } catch (thrown) {
    throw domException('NotSupportedError', 'The JSON Schema cannot be written as JSON.', thrown)
  }
  throw new TypeError('responseConstraint must be a JSON Schema or a regular expression.')
}

function isJson(answer: string): boolean {
  try {
    JSON.parse(answer)
    return true
  } catch {
    return false
  }
}

/**
 * Returns the beginning of a JSON text with the spaces that the server writes: one after each comma
 * and colon, and no other. The spaces at its end are those of the page.
 */
export function normalizeJson(prefix: string): string {
  const parts = prefix.match(/"(?:[^"\\]|\\.)*"?|[\s]+|[^\s"]+?/g) ?? []
  const tokens = parts.filter((part) => part.trim() !== '')
  const isOpen = /\s$/.test(prefix)
  return tokens
    .map((token, index) => {
      const isSeparator = token === ',' || token === ':'
      return isSeparator && (index < tokens.length - 1 || isOpen) ? `${token} ` : token
    })
    .join('')
}
