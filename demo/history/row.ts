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

/** Creates the row of a conversation. */
export function createRow({ title, changed, turnCount }: Heading, act: RowActions): HTMLElement {
  const item = element('li', '')
  const name = title || 'Untitled'
  const open = button(name, 'open', act.open)
  const when = new Date(changed).toLocaleString()
  const facts = element(
    'p',
    'quiet',
    `${when} · ${turnCount} ${turnCount === 1 ? 'turn' : 'turns'}`,
  )
  const tools = element('div', 'turn-tools')
  const labeled = (made: HTMLButtonElement): HTMLButtonElement => {
    made.ariaDescription = name
    return made
  }
  const rename = button('Rename', 'small', () => {
    const input = element('input', '')
    input.value = title
    input.ariaLabel = 'New title'
    input.maxLength = 200
    let isOver = false
    const end = (isKept: boolean): void => {
      if (isOver) return
      isOver = true
      input.replaceWith(open)
      const next = input.value.trim()
      if (isKept && next !== '' && next !== title) act.rename(next)
      else rename.focus()
    }
    input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== 'Escape') return
      // Escape would close the dialog.
      event.preventDefault()
      end(event.key === 'Enter')
    })
    input.addEventListener('blur', () => end(true))
    open.replaceWith(input)
    input.select()
  })
  tools.append(
    labeled(rename),
    labeled(button('Markdown', 'small', act.markdown)),
    labeled(button('JSON', 'small', act.json)),
    labeled(button('Copy link', 'small', act.link)),
    labeled(confirmed('Delete', 'Delete for good?', 'small', act.remove)),
  )
  item.append(open, facts, tools)
  return item
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
