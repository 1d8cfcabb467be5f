/** The answer of a turn on the page: parts of reasoning and text, with rounds of tool calls between. */
import { element } from '../dom.ts'
import { createMarkdownView, type MarkdownView } from '../markdown/view.ts'
import type { ToolRound } from '../tools/types.ts'
import type { Answer } from '../wire/answer.ts'
import type { KeptAnswer } from './tree.ts'
import { createReasoning } from './turn-parts.ts'

/** State of an answer that arrives. */
export type Growing = Pick<Answer, 'text' | 'reasoning' | 'reasoningTime' | 'reasoningTokens'>

/** Function that makes a change and keeps the end of the conversation in view. */
export type Follow = (change: () => void) => void

export interface AnswerView {
  /** Shows that something is waited for, in place of the answer or below its beginning. */
  waiting(words: string): void
  /** Shows the answer so far, which only grows. */
  show(answer: Growing): void
  /** Adds an element after the text so far. Later text appears after it. */
  insert(node: HTMLElement): void
  /** Shows the whole answer, with the rounds of an earlier visit. Resolves when it is there. */
  end(kept: KeptAnswer): Promise<void>
  /** Shows that nothing more arrives. */
  still(): void
  /** Forgets the answer, which need not be shown any more. */
  close(): void
}

/** Creates the view of an answer at the end of `parent`. */
export function createAnswerView(parent: HTMLElement, follow: Follow): AnswerView {
  const wait = element('p', 'wait')
  let part = createPart(wait)
  /** `true` once the rounds of tool calls are on the page. */
  let hasRounds = false

  function still(): void {
    wait.remove()
    part.still()
  }

  /** Ends the part of the answer that is shown. Later text gets a part of its own. */
  function closePart(): void {
    hasRounds = true
    still()
    void part.end()
    part = createPart(wait)
  }

  async function showRounds(rounds: readonly ToolRound[]): Promise<void> {
    const { createPastCard } = await import('../tools/card.ts')
    for (const round of rounds) {
      parent.append(wait)
      part.place(round)
      closePart()
      parent.append(...round.results.map(createPastCard))
    }
  }

  return {
    waiting(words) {
      wait.textContent = words
      parent.append(wait)
    },
    show(given) {
      follow(() => part.place(given))
      part.grow(() => follow(() => {}))
    },
    insert(node) {
      follow(() => {
        closePart()
        parent.append(node)
      })
    },
    async end(kept) {
      if (kept.rounds && !hasRounds) await showRounds(kept.rounds)
      if (!wait.isConnected && !part.element.isConnected) parent.append(wait)
      follow(() => part.place(kept))
      await part.end()
    },
    still,
    close: () => part.close(),
  }
}

/** A part of an answer. It takes the place of `wait` once it has text. */
function createPart(wait: HTMLElement) {
  const answer = element('div', 'answer')
  const reasoning = createReasoning()
  let markdown: MarkdownView | undefined
  let text = ''

  return {
    element: answer,
    /** Makes room for the answer so far, and shows its reasoning. */
    place(given: Growing): void {
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
    },
    /** Shows the text so far, and that more arrives. */
    grow(onShown: () => void): void {
      answer.classList.add('live')
      markdown?.show(text, onShown)
    },
    still: () => answer.classList.remove('live'),
    /** Shows the whole text. Resolves when it is there. */
    async end(): Promise<void> {
      await markdown?.end(text)
      markdown = undefined
    },
    close: () => markdown?.close(),
  }
}
