/** A row of the history: a conversation, and what can be done with it. */
import { button, element } from '../dom.ts'
import type { Heading } from './store.ts'

/** Actions that the user can take on a conversation of the list. */
export interface RowActions {
  open(): void
  rename(title: string): void
  remove(): void
  markdown(): void
  json(): void
  link(): void
}

/** A row of the list. */
export interface Row {
  element: HTMLElement
  title: string
  /** Notes when the conversation was changed, and how many turns it has. */
  describe(heading: Heading): void
  /** Marks the conversation that the chat shows. */
  setCurrent(isCurrent: boolean): void
  focus(): void
}

/** Creates the row of a conversation. Its options are folded. */
export function createRow(heading: Heading, act: RowActions): Row {
  const { title } = heading
  const item = element('li', '')
  const name = title || 'Untitled'
  const open = button(name, 'open', act.open)
  const options = button('⋯', 'small options', () => fold(!tools.hidden))
  const tools = element('div', 'turn-tools')
  const labeled = (made: HTMLButtonElement): HTMLButtonElement => {
    made.ariaDescription = name
    return made
  }
  const rename = button('Rename', 'small', () => renameInPlace(open, title, act.rename))

  function fold(isFolded: boolean): void {
    tools.hidden = isFolded
    options.ariaExpanded = String(!isFolded)
  }

  function describe({ changed, turnCount }: Heading): void {
    const count = `${turnCount} ${turnCount === 1 ? 'turn' : 'turns'}`
    open.title = `${name} · ${new Date(changed).toLocaleString()} · ${count}`
  }

  describe(heading)
  options.ariaLabel = `Options of ${name}`
  options.title = 'Options'
  tools.append(
    labeled(rename),
    labeled(button('Markdown', 'small', act.markdown)),
    labeled(button('JSON', 'small', act.json)),
    labeled(button('Copy link', 'small', act.link)),
    labeled(confirmed('Delete', 'Delete for good?', 'small', act.remove)),
  )
  fold(true)
  item.append(open, options, tools)
  return {
    element: item,
    title,
    describe,
    setCurrent(isCurrent) {
      open.ariaCurrent = isCurrent ? 'true' : null
    },
    focus: () => open.focus(),
  }
}

/** Shows a field with the title in place of `shown`. Enter renames, Escape cancels. */
function renameInPlace(shown: HTMLElement, title: string, rename: (title: string) => void): void {
  const input = element('input', '')
  input.value = title
  input.ariaLabel = 'New title'
  input.maxLength = 200
  let isOver = false
  const end = (isKept: boolean): void => {
    if (isOver) return
    isOver = true
    const held = document.activeElement === input
    input.replaceWith(shown)
    if (held) shown.focus()
    const next = input.value.trim()
    if (isKept && next !== '' && next !== title) rename(next)
  }
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== 'Escape') return
    // Escape would stop the answer.
    event.preventDefault()
    end(event.key === 'Enter')
  })
  input.addEventListener('blur', () => end(true))
  shown.replaceWith(input)
  input.select()
}

/** Creates a button that acts only when it is pressed twice. */
export function confirmed(
  label: string,
  question: string,
  className: string,
  run: () => void,
): HTMLButtonElement {
  const made = button(label, className, () => {
    const isSure = made.textContent === question
    made.textContent = isSure ? label : question
    if (isSure) run()
  })
  made.addEventListener('blur', () => (made.textContent = label))
  return made
}
