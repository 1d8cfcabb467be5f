/** The card of a tool call in the conversation: what is called, the user's approval, the result. */
import { button, element } from '../dom.ts'
import { wordsOf } from '../notice.ts'
import type { Tool, ToolCall, ToolResult } from './types.ts'

type Outcome = Omit<ToolResult, 'call'>

export interface CallCard {
  card: HTMLElement
  /** Resolves when the call has run, failed, or was declined or stopped. */
  result: Promise<Outcome>
}

/**
 * Creates the card of a call, which asks for approval. A call that cannot run says why at once, and
 * asks nothing.
 */
export function askFor(
  call: ToolCall,
  tool: Tool | undefined,
  problem: string | undefined,
  signal: AbortSignal,
): CallCard {
  const { card, state, row } = createCard(call)
  card.tabIndex = -1
  state.role = 'status'

  const settle = (outcome: Outcome, words: string): Outcome => {
    row.remove()
    state.textContent = words
    showResult(card, outcome)
    return outcome
  }

  async function run(): Promise<Outcome> {
    if (problem !== undefined || !tool) {
      return settle({ content: problem ?? '', isError: true }, 'Not run')
    }
    const answer = await decide(tool, state, row, signal)
    if (answer === null) {
      return settle({ content: 'The user declined this call.', isError: true }, 'Declined')
    }
    if (typeof answer === 'string') return settle({ content: answer, isError: false }, 'Answered')
    state.textContent = 'Running …'
    row.replaceChildren()
    try {
      const values = JSON.parse(call.arguments || '{}') as Record<string, unknown>
      const content = (await tool.run?.(values, signal)) ?? ''
      return settle({ content, isError: false }, 'Ran in this page')
    } catch (error) {
      signal.throwIfAborted()
      return settle({ content: wordsOf(error), isError: true }, 'Failed')
    }
  }

  const result = run().catch(() =>
    settle({ content: 'The user stopped this call.', isError: true }, 'Stopped'),
  )
  if (problem === undefined) focusSoon(card)
  return { card, result }
}

/** Creates the card of a call of an earlier visit, with its result. */
export function createPastCard({ call, ...outcome }: ToolResult): HTMLElement {
  const { card, state, row } = createCard(call)
  row.remove()
  state.textContent = outcome.isError ? 'Failed or declined' : 'Done'
  showResult(card, outcome)
  return card
}

function createCard(call: ToolCall): { card: HTMLElement; state: HTMLElement; row: HTMLElement } {
  const card = element('section', 'tool-card')
  const state = element('p', 'tool-state')
  const row = element('div', 'row')
  card.ariaLabel = `Call of ${call.name}`
  const args = createCode('Arguments', prettyJson(call.arguments))
  card.append(element('h3', '', call.name), args, state, row)
  return { card, state, row }
}

function showResult(card: HTMLElement, { content, isError }: Outcome): void {
  card.dataset['state'] = isError ? 'failed' : 'done'
  if (content !== '') card.append(createCode('Result', content))
}

function createCode(label: string, text: string): HTMLElement {
  const code = element('pre', 'tool-code', text)
  code.tabIndex = 0
  code.ariaLabel = label
  return code
}

/**
 * Resolves with the decision of the user: `true` to run the tool, `null` to decline, or the text of
 * a result that the user wrote.
 */
async function decide(
  tool: Tool,
  state: HTMLElement,
  row: HTMLElement,
  signal: AbortSignal,
): Promise<true | string | null> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    const decline = button('Decline', 'plain', () => resolve(null))
    if (tool.run) {
      state.textContent = 'The model wants to run this. It waits for you.'
      row.append(
        button('Run', 'plain strong', () => resolve(true)),
        decline,
      )
      return
    }
    const label = element('label', 'tool-answer', 'Your result')
    const text = element('textarea', '')
    text.rows = 2
    label.append(text)
    state.textContent = 'The model asks you for this result. It waits for you.'
    row.append(
      label,
      button('Send the result', 'plain strong', () => resolve(text.value)),
      decline,
    )
  })
}

/** Moves the focus to the card, so that it is announced, unless the user is writing. */
function focusSoon(card: HTMLElement): void {
  requestAnimationFrame(() => {
    const { activeElement: active } = document
    const isWriting =
      (active instanceof HTMLTextAreaElement || active instanceof HTMLInputElement) &&
      active.value !== ''
    const isInCard = active?.closest('.tool-card') ?? false
    if (!isWriting && !isInCard && card.isConnected) card.focus({ preventScroll: true })
  })
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text || '{}'), null, 2)
  } catch {
    return text
  }
}
