import { button, byId, element } from './dom.ts'

/** Distance in pixels from its end at which the conversation follows new text. */
const NEAR_END = 96

const FIRST_QUESTIONS = [
  'What is inorigin?',
  'How does it work?',
  'Do my prompts leave this device?',
  'How do I install it?',
  'What is 27 + 15?',
]

export interface Action {
  label: string
  run: () => void
}

/** One question and its answer on the page. */
export interface TurnView {
  waiting(text: string): void
  /** Shows the text of the answer so far, which only grows. */
  answer(text: string): void
  /** Ends the turn with a line of facts about it. */
  end(meta: string): void
  /** Ends the turn with an error and the actions that may help. */
  fail(message: string, actions: readonly Action[]): void
  remove(): void
}

export interface Conversation {
  /** Adds a question with its images, which are data URLs. */
  add(question: string, images: readonly string[]): TurnView
  clear(): void
  /** Shows suggested first questions, and calls `ask` with the one that is selected. */
  onSuggestion(ask: (question: string) => void): void
}

/** Creates the conversation. It shows a model's output as text and never parses it. */
export function createConversation(): Conversation {
  const log = byId('log', HTMLElement)
  const scroll = byId('scroll', HTMLElement)
  const welcome = byId('welcome', HTMLElement)
  let isAtEnd = true

  function scrollToEnd(): void {
    isAtEnd = true
    scroll.scrollTop = scroll.scrollHeight
  }

  /** Makes a change and stays at the end, unless the user has scrolled away from it. */
  function follow(change: () => void): void {
    change()
    if (isAtEnd) scrollToEnd()
  }

  scroll.addEventListener('scroll', () => {
    isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_END
  })
  // The part below grows with its errors and would cover the end.
  new ResizeObserver(() => follow(() => {})).observe(scroll)

  function add(question: string, images: readonly string[]): TurnView {
    const turn = element('article', 'turn')
    const wait = element('p', 'wait')
    const answer = element('p', 'answer')
    const text = document.createTextNode('')
    answer.append(text)

    function settle(last: HTMLElement): void {
      wait.remove()
      answer.classList.remove('live')
      turn.append(last)
      log.ariaBusy = 'false'
    }

    welcome.hidden = true
    // Screen readers announce the answer once it is complete, not word by word.
    log.ariaBusy = 'true'
    turn.append(element('span', 'hidden', 'You asked:'), element('p', 'question', question))
    if (images.length > 0) turn.append(gallery(images))
    log.append(turn)
    scrollToEnd()
    return {
      waiting: (words) =>
        follow(() => {
          wait.textContent = words
          if (!wait.isConnected) turn.append(wait)
        }),
      answer: (whole) =>
        follow(() => {
          text.appendData(whole.slice(text.length))
          if (answer.isConnected) return
          answer.classList.add('live')
          wait.replaceWith(element('span', 'hidden', 'Answer:'), answer)
        }),
      end: (meta) => follow(() => settle(element('p', 'meta', meta))),
      fail: (message, actions) =>
        follow(() => {
          const problem = element('div', 'problem')
          problem.role = 'alert'
          const row = element('div', 'row')
          row.append(...actions.map(({ label, run }) => button(label, 'plain', run)))
          problem.append(element('p', '', message), row)
          settle(problem)
        }),
      remove: () => turn.remove(),
    }
  }

  return {
    add,
    clear() {
      log.replaceChildren()
      welcome.hidden = false
    },
    onSuggestion(ask) {
      const items = FIRST_QUESTIONS.map((question) => {
        const item = element('li', '')
        item.append(button(question, '', () => ask(question)))
        return item
      })
      byId('first-questions', HTMLElement).replaceChildren(...items)
    },
  }
}

function gallery(images: readonly string[]): HTMLElement {
  const row = element('p', 'gallery')
  const shown = images.map((url, at) =>
    Object.assign(new Image(), { src: url, alt: `Image ${at + 1} of the question` }),
  )
  row.append(...shown)
  return row
}
