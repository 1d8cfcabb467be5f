/** The dialog that compares two or three answers to one prompt. */
import type { Server } from '../../src/index.ts'
import { button, copies, element } from '../dom.ts'
import { saveFile } from '../files.ts'
import { listChatModels } from '../listing.ts'
import { showModal } from '../modal.ts'
import { wordsOf } from '../notice.ts'
import { createColumn, type Choice, type Column } from './column.ts'
import { toJson, toMarkdown, type Comparison } from './result.ts'
import { runComparison, type Lane } from './run.ts'

const MIN_COLUMNS = 2
const MAX_COLUMNS = 3

let opened: HTMLDialogElement | undefined

/** Opens the dialog, which keeps its columns until the page is closed. */
export async function openCompare(starting: Promise<Server>): Promise<void> {
  opened ??= await createDialog(await starting)
  const prompt = opened.querySelector('textarea')
  // The last question of the conversation is what one wants to compare.
  if (prompt?.value === '')
    prompt.value = [...document.querySelectorAll('.question')].at(-1)?.textContent ?? ''
  if (!opened.open) showModal(opened)
}

async function createDialog(server: Server): Promise<HTMLDialogElement> {
  const dialog = element('dialog', 'compare')
  const title = element('h2', '', 'Compare')
  const label = element('label', 'compare-prompt', 'Prompt for all columns')
  const prompt = element('textarea', '')
  const models = await listChatModels(server)
  const columns = createColumns(models.map(({ id, display_name: name }) => ({ id, name })))
  const together = createTogether()
  const said = element('p', 'quiet')
  const exports = createExports()
  let running: AbortController | undefined
  title.id = 'compare-title'
  dialog.setAttribute('aria-labelledby', title.id)
  prompt.rows = 2
  label.append(prompt)
  said.role = 'status'

  async function run(): Promise<void> {
    const question = prompt.value.trim()
    if (question === '') {
      said.textContent = 'Write a prompt first.'
      return prompt.focus()
    }
    const lanes = columns.read()
    if (!lanes) return
    exports.set(undefined)
    said.textContent = 'Running …'
    setRunning(new AbortController())
    said.textContent = await compare(question, lanes)
    setRunning(undefined)
  }

  /** Runs the comparison. Resolves with the words that say how it ended. */
  async function compare(question: string, lanes: readonly Lane[]): Promise<string> {
    const signal = running?.signal ?? AbortSignal.abort()
    const created = new Date().toISOString()
    const isTogether = together.input.checked
    try {
      const results = await runComparison(server, question, lanes, isTogether, signal)
      exports.set({ prompt: question, created, together: isTogether, columns: results })
      return signal.aborted ? 'Stopped' : 'Done'
    } catch (error) {
      return wordsOf(error)
    }
  }

  function setRunning(next: AbortController | undefined): void {
    running = next
    columns.setBusy(next !== undefined)
    stop.hidden = !next
    start.hidden = next !== undefined
  }

  const start = button('Run', 'plain strong', () => void run())
  const stop = button('Stop', 'plain strong', () => running?.abort())
  const row = element('div', 'row compare-row')
  const foot = element('div', 'row')
  row.append(start, stop, columns.more, together.label, said)
  foot.append(
    ...exports.buttons,
    button('Close', 'plain', () => dialog.close()),
  )
  dialog.append(title, label, row, columns.element, foot)
  dialog.addEventListener('close', () => running?.abort())
  setRunning(undefined)
  return dialog
}

function createTogether(): { label: HTMLLabelElement; input: HTMLInputElement } {
  const label = element('label', 'compare-check')
  const input = element('input', '')
  input.type = 'checkbox'
  input.checked = true
  label.append(input, 'Ask together; they share the device')
  return { label, input }
}

interface Columns {
  element: HTMLElement
  /** Button that adds a column. */
  more: HTMLButtonElement
  /** Returns the columns for a run, cleared; `null` after showing which field is wrong. */
  read(): Lane[] | null
  setBusy(isBusy: boolean): void
}

function createColumns(choices: readonly Choice[]): Columns {
  const place = element('div', 'compare-columns')
  let list: Column[] = []
  let isBusy = false

  function add(): void {
    const column = createColumn(choices, () => {
      list = list.filter((one) => one !== column)
      column.element.remove()
      update()
    })
    list.push(column)
    place.append(column.element)
    update()
  }

  function update(): void {
    more.disabled = isBusy || list.length >= MAX_COLUMNS
    place.classList.toggle('compare-fixed', list.length <= MIN_COLUMNS)
    for (const [at, column] of list.entries()) {
      column.setNumber(at + 1)
      column.setBusy(isBusy)
    }
  }

  const more = button('Add a column', 'plain', add)
  for (let count = 0; count < MIN_COLUMNS; count += 1) add()
  return {
    element: place,
    more,
    read() {
      const lanes: Lane[] = []
      for (const view of list) {
        const settings = view.read()
        if (!settings) return null
        lanes.push({ settings, view })
      }
      for (const column of list) column.clear()
      return lanes
    },
    setBusy(next) {
      isBusy = next
      update()
    },
  }
}

interface Exports {
  buttons: readonly HTMLButtonElement[]
  /** Sets the comparison that the buttons export. Without one, they are disabled. */
  set(comparison: Comparison | undefined): void
}

function createExports(): Exports {
  let comparison: Comparison | undefined
  const text = (write: (from: Comparison) => string): string =>
    comparison ? write(comparison) : ''
  const save = (name: string, write: (from: Comparison) => string): void =>
    saveFile(name, new Blob([text(write)]))
  const copy = button('Copy as Markdown', 'plain', () => {})
  copies(copy, () => text(toMarkdown))
  const buttons = [
    copy,
    button('Save as Markdown', 'plain', () => save('comparison.md', toMarkdown)),
    button('Save as JSON', 'plain', () => save('comparison.json', toJson)),
  ]
  const set = (next: Comparison | undefined): void => {
    comparison = next
    for (const each of buttons) each.disabled = !next
  }
  set(undefined)
  return { buttons, set }
}
