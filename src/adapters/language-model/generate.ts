/** Has the model answer, and calls the tools that it asks for. */
import type { ResponseConstraint } from './constraint.ts'
import { type ChatAnswer, type Endpoint, streamChat } from './endpoint.ts'
import { domException } from './errors.ts'
import { LanguageModelToolCall } from './tool-values.ts'
import type { LanguageModelAnswer, LanguageModelTool } from './types.ts'
import {
  type HistoryMessage,
  textOf,
  toChatMessages,
  toChatTools,
  type ToolCallText,
} from './wire-messages.ts'

/** Number of answers with calls after which the model has to answer in words. */
const MAX_ROUNDS = 8

/** A request of a session to the model. */
export interface GenerateRequest {
  endpoint: Endpoint
  /** The whole conversation. */
  messages: readonly HistoryMessage[]
  constraint: ResponseConstraint | undefined
  tools: readonly LanguageModelTool[]
  /** Fields of the sampler. */
  sampling: object
  onText: (text: string) => void
  signal: AbortSignal
}

/** The answer, and what it adds to the conversation. */
export interface Generated {
  answer: LanguageModelAnswer
  added: readonly HistoryMessage[]
}

/** Resolves with the answer after all calls of tools that the page executes. */
export async function generate(request: GenerateRequest): Promise<Generated> {
  const { endpoint, messages, constraint, tools, onText, signal } = request
  const prefix = prefixOf(messages.at(-1))
  const added: HistoryMessage[] = []
  let written = ''
  for (let round = 0; ; round += 1) {
    const prefill = round === 0 ? prefix : ''
    // The prefix and the texts of all rounds together have to satisfy the constraint.
    const beginning = constraint ? constraint.normalize(prefix + written) : prefill
    const body = toBody(request, added, round, beginning)
    const { text, calls, finishReason } = await streamChat(endpoint, body, onText, signal)
    written += text
    if (calls.length === 0 || round >= MAX_ROUNDS) {
      assertValid(constraint, prefix + written, finishReason)
      added.push(toAssistantMessage(prefill + text))
      return { answer: written, added }
    }
    added.push({ role: 'assistant', text: prefill + text, calls })
    const executed = calls.map((call) => findExecute(tools, call))
    if (executed.includes(undefined)) return { answer: toParts(text, calls), added }
    const results = await Promise.all(
      executed.map(async (execute, index) => execute?.(parseArguments(calls[index]))),
    )
    signal.throwIfAborted()
    for (const [index, result] of results.entries()) {
      added.push({ role: 'tool', callId: calls[index]?.id ?? '', text: String(result) })
    }
  }
}

/** Returns the body of a request for an answer that continues its `beginning`. */
function toBody(
  { messages, constraint, tools, sampling }: GenerateRequest,
  added: readonly HistoryMessage[],
  round: number,
  beginning: string,
): object {
  const asked = prefixOf(messages.at(-1)) === '' ? messages : messages.slice(0, -1)
  const prefilled = beginning === '' ? [] : [toAssistantMessage(beginning)]
  return {
    ...sampling,
    messages: toChatMessages([...asked, ...added, ...prefilled]),
    ...(beginning !== '' && { continue_final_message: true }),
    ...(constraint && { response_format: constraint.format }),
    ...(tools.length > 0 && { tools: toChatTools(tools) }),
    ...(tools.length > 0 && round >= MAX_ROUNDS && { tool_choice: 'none' }),
  }
}

/** Returns the text that the answer continues; empty if there is none. */
function prefixOf(last: HistoryMessage | undefined): string {
  return last && 'prefix' in last && last.prefix ? textOf(last.content) : ''
}

const toAssistantMessage = (text: string): HistoryMessage => ({
  role: 'assistant',
  prefix: false,
  content: [{ type: 'text', value: text }],
})

function assertValid(
  constraint: ResponseConstraint | undefined,
  answer: string,
  finishReason: ChatAnswer['finishReason'],
): void {
  if (!constraint || constraint.isValid(answer)) return
  const why = finishReason === 'length' ? ', because it reached the end of the context window' : ''
  throw domException('SyntaxError', `The answer does not satisfy responseConstraint${why}.`)
}

type Execute = (input: unknown) => Promise<string> | string

const findExecute = (
  tools: readonly LanguageModelTool[],
  { name }: ToolCallText,
): Execute | undefined => tools.find((tool) => tool.name === name)?.execute as Execute | undefined

const parseArguments = (call: ToolCallText | undefined): unknown =>
  JSON.parse(call?.arguments || '{}')

function toParts(text: string, calls: readonly ToolCallText[]): LanguageModelAnswer {
  const parts = calls.map((call) => {
    const given = parseArguments(call) as object
    const value = new LanguageModelToolCall({ callID: call.id, name: call.name, arguments: given })
    return { type: 'tool-call' as const, value }
  })
  return text === '' ? parts : [{ type: 'text', value: text }, ...parts]
}
