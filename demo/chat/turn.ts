/** One question and its answer on the page. */
import { button, copies, element } from '../dom.ts'
import { isCut, summary } from '../wire/summary.ts'
import { createAnswerView, type Follow, type Growing } from './answer-view.ts'
import type { Turn } from './tree.ts'
import { createBranchSwitch, editInPlace, type BranchSwitch } from './turn-parts.ts'

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
  /** Asks the same question of SmolLM2, as a branch. */
  askLarger(): void
  /** Continues an answer that was cut or stopped. */
  resume(): void
  remove(): void
  /** Shows the branch before or after this one. */
  step(step: -1 | 1): void
  /** Returns what may help after an error; `undefined` stands for an error before a reload. */
  after(error: unknown): Action[]
  /** Resolves with a larger model that may help where the guide cannot; with `undefined` elsewhere. */
  offer(error: unknown): Promise<Action | undefined>
}

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
  /**
   * Shows the whole turn, and then a line of facts about it; if it has failed, the message of its
   * error and the actions that may help.
   */
  end(error?: unknown): Promise<void>
  remove(): void
}

/** Creates the view of a turn, without its answer. */
export function createTurnView(turn: Turn, act: TurnActions, follow: Follow): TurnView {
  const article = element('article', 'turn')
  const branches = createBranchSwitch(act.step)
  const view = createAnswerView(article, follow)
  /** Elements below the answer. */
  let last: HTMLElement[] = []

  article.append(...questionParts(turn, act, branches))

  function settle(...parts: HTMLElement[]): void {
    view.still()
    for (const part of last) part.remove()
    last = parts
    article.append(...parts)
  }

  return {
    element: article,
    branches,
    waiting: (words) =>
      follow(() => {
        settle()
        view.waiting(words)
      }),
    show: view.show,
    insert: view.insert,
    append: (node) => follow(() => article.append(node)),
    async end(error) {
      const { answer, error: message } = turn
      if (answer) await view.end(answer)
      const row = message === undefined ? tools(turn, act) : buttons(act.after(error))
      follow(() =>
        message === undefined
          ? settle(...sources(turn), facts(turn), row)
          : settle(problem(message, row)),
      )
      void act.offer(error).then((offer) => {
        if (!offer) return
        const larger = element('div', 'row')
        larger.append(button(offer.label, 'plain strong', offer.run))
        last.push(larger)
        follow(() => row.before(larger))
      })
    },
    remove() {
      view.close()
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
  const bubble = turn.images.length > 0 ? element('div', 'pictured') : question
  if (bubble !== question) bubble.append(gallery(turn.images), question)
  return [element('h2', 'hidden', 'You asked:'), bubble, row]
}

/** Returns the line that says why the guide answered, with links to pages of the documentation. */
function sources({ answer }: Turn): HTMLElement[] {
  if (!answer?.sources) return []
  const line = element(
    'p',
    'sources',
    'The guide answered, because this is about inorigin. Read on: ',
  )
  for (const [at, { title, path }] of answer.sources.entries()) {
    const link = element('a', '', title)
    link.href = path
    line.append(at > 0 ? ' · ' : '', link)
  }
  return [line]
}

function facts({ answer, stopped }: Turn): HTMLElement {
  const list = answer ? [summary(answer)] : []
  if (stopped) list.unshift('stopped')
  // Another tab may be waiting for it.
  else if (!answer) list.push('no answer yet')
  return element('p', 'meta', list.filter(Boolean).join(' · '))
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
  if (answer?.sources) row.append(button('Ask SmolLM2', 'small', act.askLarger))
  row.append(button('Regenerate', 'small', act.regenerate), button('Delete', 'small', act.remove))
  return row
}

function buttons(actions: readonly Action[]): HTMLElement {
  const row = element('div', 'row')
  row.append(...actions.map(({ label, run }) => button(label, 'plain', run)))
  return row
}

function problem(message: string, row: HTMLElement): HTMLElement {
  const box = element('div', 'problem')
  box.role = 'alert'
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
