/** The command palette: a field that filters the commands, and their list. */
import { element } from '../dom.ts'
import { showModal } from '../modal.ts'
import { findCommands, showKeys, type Command } from './commands.ts'

const LIST_ID = 'palette-list'

let opened: HTMLDialogElement | undefined

/** Opens the palette. Enter runs the selected command, arrow keys select, Escape closes. */
export function openPalette(): void {
  if (opened?.open) return opened.close()
  const dialog = element('dialog', 'palette')
  const input = createInput()
  const none = element('p', 'quiet', 'No command has this name.')
  const list = createList(input, (command) => {
    dialog.close()
    command.run()
  })
  opened = dialog
  dialog.ariaLabel = 'Commands'

  function filter(): void {
    const isEmpty = list.show(findCommands(input.value)) === 0
    none.hidden = !isEmpty
    list.element.hidden = isEmpty
  }

  input.addEventListener('input', filter)
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return
    if (event.key === 'ArrowDown') list.move(1)
    else if (event.key === 'ArrowUp') list.move(-1)
    else if (event.key === 'Enter') list.run()
    else return
    event.preventDefault()
  })
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog) dialog.close()
  })
  dialog.append(input, list.element, none)
  showModal(dialog)
  filter()
}

function createInput(): HTMLInputElement {
  const input = element('input', '')
  Object.assign(input, { type: 'text', placeholder: 'Find a command', autocomplete: 'off' })
  input.role = 'combobox'
  input.ariaLabel = 'Find a command'
  input.ariaExpanded = 'true'
  input.ariaAutoComplete = 'list'
  input.setAttribute('aria-controls', LIST_ID)
  return input
}

interface CommandList {
  element: HTMLElement
  /** Shows these commands, selects the first, and returns their number. */
  show(commands: readonly Command[]): number
  /** Selects another command, in a circle. */
  move(step: number): void
  /** Runs the selected command, if there is one. */
  run(): void
}

/** Creates the list. The focus stays in the input, which names the selected item. */
function createList(input: HTMLInputElement, run: (command: Command) => void): CommandList {
  const list = element('ul', 'palette-list')
  let shown: readonly Command[] = []
  let selected = 0
  list.id = LIST_ID
  list.role = 'listbox'
  list.ariaLabel = 'Commands'

  function select(at: number): void {
    selected = shown.length === 0 ? 0 : (at + shown.length) % shown.length
    for (const [index, item] of [...list.children].entries()) {
      item.ariaSelected = String(index === selected)
      if (index === selected) item.scrollIntoView({ block: 'nearest' })
    }
    if (shown.length === 0) input.removeAttribute('aria-activedescendant')
    else input.setAttribute('aria-activedescendant', `${LIST_ID}-${selected}`)
  }

  function toItem(command: Command, at: number): HTMLLIElement {
    const item = element('li', '')
    item.id = `${LIST_ID}-${at}`
    item.role = 'option'
    item.append(element('span', '', command.title))
    if (command.keys) item.append(element('kbd', '', showKeys(command.keys)))
    item.addEventListener('click', () => run(command))
    return item
  }

  return {
    element: list,
    show(commands) {
      shown = commands
      list.replaceChildren(...shown.map(toItem))
      select(0)
      return shown.length
    },
    move: (step) => select(selected + step),
    run() {
      const command = shown[selected]
      if (command) run(command)
    },
  }
}
