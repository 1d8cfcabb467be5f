/** The agent loop: the model calls tools, the user approves, and the model reads the results. */
import { element } from '../dom.ts'
import type { Answer } from '../wire/answer.ts'
import { askFor } from './card.ts'
import { findMismatch } from './schema.ts'
import type { Tool, ToolCall, ToolResult, ToolRound } from './types.ts'
import { readCalls, withRound, withTools, type ToolChoice } from './wire.ts'

export interface Agent {
  tools: readonly Tool[]
  /** Choice of the first request. Later ones let the model decide. */
  choice: ToolChoice
  /** Limit of rounds of calls. After them, the model has to answer in words. */
  maxRounds: number
}

/** The part of a turn in the conversation that the loop uses. */
export interface LoopView {
  /** Adds an element after the text so far. Later text appears after it. */
  insert(node: HTMLElement): void
  /** Adds an element below the text, which is the last. */
  append(node: HTMLElement): void
  waiting(text: string): void
}

/**
 * Sends the request of an answer with the agent's tools, and those that follow from its calls.
 * Resolves when an answer calls nothing more.
 *
 * @param send Sends a request and shows its answer. Resolves when the answer has ended.
 */
export async function converse(
  agent: Agent,
  first: Answer,
  view: LoopView,
  send: (answer: Answer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { request } = first
  const rounds: ToolRound[] = []
  first.request = withTools(request, agent.tools, agent.choice)
  let answer = first
  for (;;) {
    await send(answer)
    const calls = readCalls(answer.request, answer.raw)
    if (calls.length === 0) return
    if (rounds.length === agent.maxRounds) {
      view.append(
        note(`The model still calls tools after ${agent.maxRounds} rounds. It ends here.`),
      )
      return
    }
    const results = await runAll(agent, calls, view, signal)
    rounds.push({ text: answer.text, results })
    if (signal.aborted) {
      // The turn keeps the calls, which the page shows, and nothing after them.
      Object.assign(answer, { rounds, text: '', reasoning: undefined, finish: undefined })
      return
    }
    const isLast = rounds.length === agent.maxRounds
    if (isLast) view.insert(note(`Round ${rounds.length} of ${agent.maxRounds} was the last.`))
    const offered = withTools(request, agent.tools, isLast ? 'none' : 'auto')
    const next = rounds.reduce(withRound, offered)
    const { style, url } = answer
    answer = { style, url, request: next, raw: '', text: '', rounds: [...rounds] }
    view.waiting('The model reads the results')
  }
}

/** Shows a card for each call. Resolves when all of them have a result, or were stopped. */
async function runAll(
  { tools }: Agent,
  calls: readonly ToolCall[],
  view: LoopView,
  signal: AbortSignal,
): Promise<ToolResult[]> {
  const running = calls.map(async (call): Promise<ToolResult> => {
    const tool = tools.find(({ name }) => name === call.name)
    const { card, result } = askFor(call, tool, findArgumentsError(call, tool), signal)
    view.insert(card)
    return { call, ...(await result) }
  })
  return Promise.all(running)
}

/** Returns why the arguments cannot be passed to the tool; `undefined` if they can. */
function findArgumentsError(call: ToolCall, tool: Tool | undefined): string | undefined {
  if (!tool) return `There is no tool "${call.name}".`
  try {
    return findMismatch(tool.parameters, JSON.parse(call.arguments || '{}'))
  } catch {
    return 'The arguments are not JSON.'
  }
}

function note(text: string): HTMLElement {
  return element('p', 'tool-note', text)
}
