/** The conversation on the page: the turns of the chosen branches. */
import { button, byId, element } from '../dom.ts'
import { drawShapes } from '../drawn.ts'
import { createTurnView, type TurnActions, type TurnView } from './turn.ts'
import { branchesOf, pathOf, type Conversation, type Turn } from './tree.ts'

/** Distance in pixels from its end at which the conversation follows new text. */
const NEAR_END = 96

interface FirstQuestion {
  question: string
  /** Draws the picture that is sent with the question, and returns it as a data URL. */
  draw?: () => string
}

const FIRST_QUESTIONS: readonly FirstQuestion[] = [
  { question: 'What is inorigin?' },
  { question: 'How does it work?' },
  { question: 'What is in this picture?', draw: drawShapes },
  { question: 'Do my prompts leave this device?' },
  { question: 'How do I install it?' },
  { question: 'What is 27 + 15?' },
]

export interface ConversationView {
  /**
   * Shows the chosen branches of a conversation. Keeps the views of turns that were shown before.
   * `asked` is a turn whose answer is yet to come. Returns the view of each turn.
   */
  show(conversation: Conversation, asked?: Turn): Map<Turn, TurnView>
  /** Notes whether an answer arrives. */
  setBusy(busy: boolean): void
  scrollToEnd(): void
  /** Shows suggested first questions, and calls `ask` with the one that is selected and its images. */
  onSuggestion(ask: (question: string, images: readonly string[]) => void): void
}

/** Creates the view. `actionsFor` returns what the user can do with a turn. */
export function createConversationView(actionsFor: (turn: Turn) => TurnActions): ConversationView {
  const log = byId('log', HTMLElement)
  const scroll = byId('scroll', HTMLElement)
  const welcome = byId('welcome', HTMLElement)
  const newChat = byId('new-chat', HTMLButtonElement)
  let shown = new Map<Turn, TurnView>()
  let isAtEnd = true

  function scrollToEnd(): void {
    isAtEnd = true
    scroll.scrollTop = scroll.scrollHeight
  }

  /** Makes a change and stays at the end, unless the user has scrolled away from it. */
  function follow(change: () => void): void {
    change()
    // The first screen is read from its top, also where it does not fit.
    if (isAtEnd && welcome.hidden) scrollToEnd()
  }

  scroll.addEventListener('scroll', () => {
    isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_END
  })
  // The part below grows with its errors and would cover the end.
  new ResizeObserver(() => follow(() => {})).observe(scroll)

  return {
    show(conversation, asked) {
      const added: TurnView[] = []
      const views = new Map<Turn, TurnView>()
      for (const turn of pathOf(conversation)) {
        const view = shown.get(turn) ?? createTurnView(turn, actionsFor(turn), follow)
        if (!shown.delete(turn) && turn !== asked) added.push(view)
        views.set(turn, view)
      }
      for (const view of shown.values()) view.remove()
      shown = views
      for (const [at, [turn, view]] of [...views].entries()) {
        const there = log.children[at] ?? null
        if (there !== view.element) log.insertBefore(view.element, there)
        const branches = branchesOf(conversation, turn)
        view.branches.show(branches.indexOf(turn) + 1, branches.length)
      }
      welcome.hidden = views.size > 0
      newChat.disabled = conversation.turns.length === 0
      for (const view of added) void view.end()
      return views
    },
    setBusy(busy) {
      log.classList.toggle('busy', busy)
    },
    scrollToEnd,
    onSuggestion: suggest,
  }
}

function suggest(ask: (question: string, images: readonly string[]) => void): void {
  const items = FIRST_QUESTIONS.map(({ question, draw }) => {
    const images = draw ? [draw()] : []
    const item = element('li', '')
    const chip = button(question, '', () => ask(question, images))
    // The question names the button, so the picture needs no text of its own.
    chip.prepend(...images.map((src) => Object.assign(new Image(), { src, alt: '' })))
    item.append(chip)
    return item
  })
  byId('first-questions', HTMLElement).replaceChildren(...items)
}
