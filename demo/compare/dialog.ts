/** The dialog that compares two or three answers to one prompt. */
import type { Server } from '../../src/index.ts'
import type { Chat } from '../chat/chat.ts'
import { toExchanges } from '../chat/kept.ts'
import { pathOf, type Conversation } from '../chat/tree.ts'
import { button, byId, copies, element } from '../dom.ts'
import { saveFile } from '../files.ts'
import { listChatModels } from '../listing.ts'
import { showModal } from '../modal.ts'
import { wordsOf } from '../notice.ts'
import { createColumn, type Choice, type Column } from './column.ts'
import { toJson, toMarkdown, type Comparison } from './result.ts'
import { runComparison, type Asked, type Lane } from './run.ts'

const MIN_COLUMNS = 2
const MAX_COLUMNS = 3

interface Dialog {
  element: HTMLDialogElement
  /** Takes over the last question of a conversation, unless the visitor has written another one. */
  take(conversation: Conversation | undefined): void
}

let opened: Dialog | undefined

/** Opens the dialog, which keeps its columns until the page is closed. */
export async function openCompare(starting: Promise<Server>, chat: Chat): Promise<void> {
  opened ??= await createDialog(await starting)
  const conversation = await chat.latest().catch(() => undefined)
  if (opened.element.open) return
  opened.take(conversation)
  showModal(opened.element)
}

async function createDialog(server: Server): Promise<Dialog> {
  const dialog = element('dialog', 'compare')
  const title = element('h2', '', 'Compare')
  const label = element('label', 'compare-prompt', 'Prompt for all columns')
  const prompt = element('textarea', '')
  const models = await listChatModels(server)
  const columns = createColumns(models.map(({ id, display_name: name }) => ({ id, name })))
  const together = createCheck('Ask together; they share the device')
  const before = createCheck('')
  const said = element('p', 'quiet')
  const exports = createExports()
  let running: AbortController | undefined
  /** The last question of the chat, with its images and what was said before it. */
  let last: Asked = { question: '', images: [], history: [] }
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
      const asked: Asked = before.input.checked ? { ...last, question } : { question }
      const results = await runComparison(server, asked, lanes, isTogether, signal)
      const { history = [] } = asked
      exports.set({ prompt: question, history, created, together: isTogether, columns: results })
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
  row.append(start, stop, columns.more, together.label, before.label, said)
  foot.append(
    ...exports.buttons,
    button('Close', 'plain', () => dialog.close()),
  )
  dialog.append(title, label, row, columns.element, foot)
  dialog.addEventListener('close', () => running?.abort())
  setRunning(undefined)
  return {
    element: dialog,
    take(conversation) {
      if (prompt.value !== '' && prompt.value !== last.question) return
      last = toAsked(conversation)
      prompt.value = last.question
      const words = describe(last)
      before.input.checked = words !== ''
      before.label.hidden = words === ''
      before.words.data = words
    },
  }
}

function toAsked(conversation: Conversation | undefined): Asked {
  const path = conversation ? pathOf(conversation) : []
  const { question = '', images = [] } = path.at(-1) ?? {}
  return { question, images, history: toExchanges(path.slice(0, -1)) }
}

/** Returns what goes with the question; nothing if it stands alone. */
function describe({ images = [], history = [] }: Asked): string {
  const parts = [
    [images.length, 'image'],
    [history.length, 'earlier question'],
  ] as const
  const counts = parts.flatMap(([count, name]) =>
    count === 0 ? [] : [`${count} ${name}${count === 1 ? '' : 's'}`],
  )
  return counts.length === 0 ? '' : `With ${counts.join(' and ')} of the chat`
}

function createCheck(text: string) {
  const label = element('label', 'compare-check')
  const input = element('input', '')
  input.type = 'checkbox'
  input.checked = true
  const words = document.createTextNode(text)
  label.append(input, words)
  return { label, input, words }
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
  const { value } = byId('model', HTMLSelectElement)
  if (value !== '') list[0]?.choose(value)
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
