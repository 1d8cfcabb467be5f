/** The sheet of shortcuts. */
import { button, element } from '../dom.ts'
import { showModal } from '../modal.ts'
import { commandsWithKeys, showKeys } from './commands.ts'

/** Keys that parts of the page handle themselves. */
const OTHERS: readonly [keys: string, title: string][] = [
  ['Enter', 'Send the question'],
  ['Shift Enter', 'Add a line to the question'],
  ['Escape', 'Stop the answer, or close what is open'],
]

/** Opens the sheet. */
export function openHelp(): void {
  const dialog = element('dialog', 'help')
  const title = element('h2', '', 'Shortcuts')
  const list = element('dl', 'facts')
  title.id = 'help-title'
  dialog.setAttribute('aria-labelledby', title.id)
  const rows = [
    ...commandsWithKeys().map(({ keys = '', title: name }) => [showKeys(keys), name] as const),
    ...OTHERS,
  ]
  for (const [keys, name] of rows) {
    const term = element('dt', '')
    term.append(element('kbd', '', keys))
    list.append(term, element('dd', '', name))
  }
  const row = element('div', 'row')
  row.append(button('Close', 'plain', () => dialog.close()))
  dialog.append(title, list, row)
  showModal(dialog)
}
