/** Parts of a turn: its reasoning, the form that edits its question, and the choice of a branch. */
import { button, element } from '../dom.ts'
import { duration } from '../format.ts'
import type { Answer } from '../wire/answer.ts'

/** Reasoning of an answer, folded. */
export interface ReasoningView {
  element: HTMLElement
  /** Shows the reasoning so far, which only grows, and how long it took. */
  show(reasoning: Pick<Answer, 'reasoning' | 'reasoningTime' | 'reasoningTokens'>): void
}

export function createReasoning(): ReasoningView {
  const box = element('details', 'reasoning')
  const title = element('summary', '')
  const text = document.createTextNode('')
  const content = element('p', 'reasoning-text')
  content.append(text)
  box.append(title, content)
  return {
    element: box,
    show({ reasoning = '', reasoningTime = 0, reasoningTokens }) {
      const tokens = reasoningTokens === undefined ? '' : ` · ${reasoningTokens} tokens`
      title.textContent = `Reasoning · ${duration(reasoningTime)}${tokens}`
      text.appendData(reasoning.slice(text.length))
    },
  }
}

/**
 * Shows a form with the question in place of `shown`. Enter asks, Shift+Enter adds a line, Escape
 * cancels.
 */
export function editInPlace(
  shown: HTMLElement,
  question: string,
  onAsk: (edited: string) => void,
  onEnd: () => void,
): void {
  const form = element('form', 'edit')
  const input = element('textarea', '')
  input.value = question
  input.ariaLabel = 'Edited question'
  input.rows = Math.min(8, question.split('\n').length + 1)
  const end = (): void => {
    form.replaceWith(shown)
    onEnd()
  }
  const ask = element('button', 'plain strong', 'Ask')
  const row = element('div', 'row')
  row.append(ask, button('Cancel', 'plain', end))
  form.append(input, row)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const edited = input.value.trim()
    if (edited === '') return
    end()
    onAsk(edited)
  })
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.preventDefault()
      end()
    }
    const sends = event.key === 'Enter' && !event.shiftKey && !event.isComposing
    if (!sends || event.target !== input) return
    event.preventDefault()
    form.requestSubmit()
  })
  shown.replaceWith(form)
  input.focus()
}

/** Buttons that switch between the branches of a turn, such as `2 / 3`. */
export interface BranchSwitch {
  element: HTMLElement
  /** Shows which branch this is, from 1. One branch alone shows nothing. */
  show(position: number, count: number): void
  focus(step: -1 | 1): void
}

export function createBranchSwitch(onStep: (step: -1 | 1) => void): BranchSwitch {
  const box = element('div', 'branches')
  const figure = element('span', '')
  const before = button('‹', 'small', () => onStep(-1))
  const after = button('›', 'small', () => onStep(1))
  before.ariaLabel = 'Previous version'
  after.ariaLabel = 'Next version'
  box.role = 'group'
  box.ariaLabel = 'Versions'
  box.append(before, figure, after)
  return {
    element: box,
    show(position, count) {
      box.hidden = count < 2
      figure.textContent = `${position} / ${count}`
      before.disabled = position <= 1
      after.disabled = position >= count
    },
    focus(step) {
      const [wanted, other] = step < 0 ? [before, after] : [after, before]
      ;(wanted.disabled ? other : wanted).focus()
    },
  }
}
