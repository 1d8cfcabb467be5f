/** One question and its answer on the page. */
import { button, copies, element } from '../dom.ts'
import { createMarkdownView, type MarkdownView } from '../markdown/view.ts'
import type { ToolRound } from '../tools/types.ts'
import type { Answer } from '../wire/answer.ts'
import { isCut, summary } from '../wire/summary.ts'
import {
  createBranchSwitch,
  createReasoning,
  editInPlace,
  type BranchSwitch,
} from './turn-parts.ts'
import type { Turn } from './tree.ts'

export interface Action {
  label: string
  run: () => void
}

/** Actions that the user can take on a turn. */
export interface TurnActions {
  /** Asks another question in place of this one, as a branch. */
  edit(question: string): void
  /** Asks the same question again, as a branch. */
  regenerate(): void
  /** Continues an answer that was cut or stopped. */
  resume(): void
  remove(): void
  /** Shows the branch before or after this one. */
  step(step: -1 | 1): void
}

/** State of an answer that arrives. */
export type Growing = Pick<Answer, 'text' | 'reasoning' | 'reasoningTime' | 'reasoningTokens'>

export interface TurnView {
  readonly element: HTMLElement
  readonly branches: BranchSwitch
  /** Shows that something is waited for, in place of the answer or below its beginning. */
  waiting(text: string): void
  /** Shows the answer so far, which only grows. */
  show(answer: Growing): void
  /** Adds an element after the text so far. Later text appears after it. */
  insert(node: HTMLElement): void
  /** Adds an element below the text, which is the last. */
  append(node: HTMLElement): void
  /** Shows the whole turn with a line of facts about it, once that is on the page. */
  end(): Promise<void>
  /** Shows the error of the turn and the actions that may help. */
  fail(actions: readonly Action[]): Promise<void>
  remove(): void
}

/** Function that makes a change and keeps the end of the conversation in view. */
export type Follow = (change: () => void) => void

/** Creates the view of a turn, without its answer. */
export function createTurnView(turn: Turn, act: TurnActions, follow: Follow): TurnView {
  const article = element('article', 'turn')
  const wait = element('p', 'wait')
  let answer = element('div', 'answer')
  let reasoning = createReasoning()
  const branches = createBranchSwitch(act.step)
  /** Elements below the answer. */
  let last: HTMLElement[] = []
  let markdown: MarkdownView | undefined
  /** Text of the answer that is shown. */
  let text = ''
  /** `true` once the rounds of tool calls are on the page. */
  let hasRounds = false

  article.append(...questionParts(turn, act, branches))

  function show(given: Growing): void {
    if (given.reasoning) {
      reasoning.show(given)
      if (!reasoning.element.isConnected)
        (wait.isConnected ? wait : answer).before(reasoning.element)
    }
    text = given.text
    if (text === '') return
    markdown ??= createMarkdownView(answer)
    if (answer.isConnected) wait.remove()
    else wait.replaceWith(element('span', 'hidden', 'Answer:'), answer)
  }

  function settle(...parts: HTMLElement[]): void {
    wait.remove()
    answer.classList.remove('live')
    for (const part of last) part.remove()
    last = parts
    article.append(...parts)
  }

  /** Ends the part of the answer that is shown. Later text gets a part of its own. */
  function closePart(): void {
    hasRounds = true
    wait.remove()
    answer.classList.remove('live')
    void markdown?.end(text)
    markdown = undefined
    answer = element('div', 'answer')
    reasoning = createReasoning()
    text = ''
  }

  /** Shows the rounds of tool calls of an earlier visit. */
  async function showRounds(rounds: readonly ToolRound[]): Promise<void> {
    const { createPastCard } = await import('../tools/card.ts')
    for (const round of rounds) {
      article.append(wait)
      show(round)
      closePart()
      article.append(...round.results.map(createPastCard))
    }
  }

  async function showWhole(): Promise<void> {
    const { answer: kept } = turn
    if (!kept) return
    if (kept.rounds && !hasRounds) await showRounds(kept.rounds)
    if (!wait.isConnected && !answer.isConnected) article.append(wait)
    follow(() => show(kept))
    await markdown?.end(kept.text)
    markdown = undefined
  }

  return {
    element: article,
    branches,
    waiting: (words) =>
      follow(() => {
        settle()
        wait.textContent = words
        article.append(wait)
      }),
    show(given) {
      follow(() => show(given))
      answer.classList.add('live')
      markdown?.show(given.text, () => follow(() => {}))
    },
    insert(node) {
      follow(() => {
        closePart()
        article.append(node)
      })
    },
    append: (node) => follow(() => article.append(node)),
    async end() {
      await showWhole()
      const { answer: kept } = turn
      const facts = kept ? [summary(kept)] : []
      if (turn.stopped) facts.unshift('stopped')
      // Another tab may be waiting for it.
      else if (!kept) facts.push('no answer yet')
      const meta = element('p', 'meta', facts.join(' · '))
      follow(() => settle(meta, tools(turn, act)))
    },
    async fail(actions) {
      await showWhole()
      follow(() => settle(problem(turn.error ?? '', actions)))
    },
    remove() {
      markdown?.close()
      article.remove()
    },
  }
}

function questionParts(turn: Turn, act: TurnActions, branches: BranchSwitch): HTMLElement[] {
  const question = element('p', 'question', turn.question)
  question.dir = 'auto'
  const row = element('div', 'question-tools')
  const edit = button('Edit', 'small', () => {
    row.hidden = true
    editInPlace(question, turn.question, act.edit, () => {
      row.hidden = false
      edit.focus()
    })
  })
  edit.ariaLabel = 'Edit the question'
  row.append(branches.element, edit)
  const pictures = turn.images.length > 0 ? [gallery(turn.images)] : []
  return [element('h2', 'hidden', 'You asked:'), question, ...pictures, row]
}

function tools(turn: Turn, act: TurnActions): HTMLElement {
  const row = element('div', 'turn-tools')
  const { answer } = turn
  if (answer?.text) {
    const copy = button('Copy', 'small', () => {})
    copies(copy, () => answer.text)
    row.append(copy)
    if (isCut(answer) || turn.stopped) row.append(button('Continue', 'small', act.resume))
  }
  row.append(button('Regenerate', 'small', act.regenerate), button('Delete', 'small', act.remove))
  return row
}

function problem(message: string, actions: readonly Action[]): HTMLElement {
  const box = element('div', 'problem')
  box.role = 'alert'
  const row = element('div', 'row')
  row.append(...actions.map(({ label, run }) => button(label, 'plain', run)))
  box.append(element('p', '', message), row)
  return box
}

function gallery(images: readonly string[]): HTMLElement {
  const row = element('p', 'gallery')
  const shown = images.map((url, at) =>
    Object.assign(new Image(), { src: url, alt: `Image ${at + 1} of the question` }),
  )
  row.append(...shown)
  return row
}
