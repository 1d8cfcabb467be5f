/** The history: a dialog that lists the conversations of this device. */
import type { Chat } from '../chat/chat.ts'
import type { Conversation } from '../chat/tree.ts'
import { button, element } from '../dom.ts'
import { notice, wordsOf } from '../notice.ts'
import { MAX_FILE_BYTES, parseJson, toFileName, toJson, toMarkdown } from './exchange-format.ts'
import { toLink } from './link.ts'
import type { Heading, HistoryStore } from './store.ts'

interface Dialog {
  element: HTMLDialogElement
  show(): Promise<void>
}

let dialog: Dialog | undefined

/** Opens the dialog. */
export async function openHistory(store: HistoryStore, chat: Chat): Promise<void> {
  dialog ??= createDialog(store, chat)
  await dialog.show()
}

function createDialog(store: HistoryStore, chat: Chat): Dialog {
  const box = element('dialog', 'history')
  const title = element('h2', '', 'History')
  const search = element('input', '')
  const list = element('ul', 'conversations')
  const empty = element('p', 'quiet')
  const said = element('p', 'quiet')
  const file = element('input', '')
  title.id = 'history-title'
  box.setAttribute('aria-labelledby', title.id)
  search.type = 'search'
  search.placeholder = 'Search'
  search.ariaLabel = 'Search the history'
  list.ariaLabel = 'Conversations'
  said.role = 'status'
  file.type = 'file'
  file.accept = 'application/json,.json'
  file.hidden = true
  file.ariaLabel = 'File to import'

  async function refresh(): Promise<void> {
    const headings = await store.list(search.value)
    const nothing = search.value === '' ? 'No conversation is stored yet.' : 'Nothing was found.'
    empty.textContent = headings.length === 0 ? nothing : ''
    list.replaceChildren(...headings.map(row))
  }

  /** Does a piece of work and says how it failed. */
  function attempt(work: () => Promise<string | void>): void {
    work().then(
      (done) => {
        if (done !== undefined) said.textContent = done
      },
      (error: unknown) => void (said.textContent = wordsOf(error)),
    )
  }

  /** Does a piece of work with a conversation, unless another tab has deleted it. */
  function use(id: string, work: (found: Conversation) => Promise<string | void>): void {
    attempt(async () => {
      const found = await store.get(id)
      return found && work(found)
    })
  }

  function row(heading: Heading): HTMLElement {
    return createRow(heading, {
      open() {
        box.close()
        void chat.open(heading.id)
      },
      rename: (name) => attempt(() => store.rename(heading.id, name)),
      remove: () => attempt(() => store.remove(heading.id)),
      markdown: () =>
        use(heading.id, async (found) =>
          save(toFileName(found.title, 'md'), toMarkdown(found), 'text/markdown'),
        ),
      json: () =>
        use(heading.id, async (found) =>
          save(toFileName(found.title, 'json'), toJson([found]), 'application/json'),
        ),
      link: () =>
        use(heading.id, async (found) => {
          await navigator.clipboard.writeText(await toLink(found, location.href))
          return 'The link is copied. The conversation is in it, and is sent to no server.'
        }),
    })
  }

  file.addEventListener('change', () => {
    const [chosen] = file.files ?? []
    if (chosen) attempt(() => importFile(store, chosen))
    file.value = ''
  })
  search.addEventListener('input', () => attempt(refresh))
  store.onChange(() => {
    if (box.open) attempt(refresh)
  })
  const exportAll = button('Export all', 'plain', () =>
    attempt(async () =>
      save('inorigin-conversations.json', toJson(await store.all()), 'application/json'),
    ),
  )
  const tools = element('div', 'row')
  tools.append(
    button('Import', 'plain', () => file.click()),
    exportAll,
    confirmed('Delete all', 'Delete all for good?', 'plain', () =>
      attempt(() => store.removeAll()),
    ),
    button('Close', 'plain strong', () => box.close()),
  )
  box.append(title, search, list, empty, said, file, tools)
  document.body.append(box)
  return {
    element: box,
    async show() {
      if (!box.open) box.showModal()
      await refresh().catch((error: unknown) => {
        box.close()
        notice(`The history cannot be read. ${wordsOf(error)}`, 'mild')
      })
    },
  }
}

/** Stores the conversations of a file. Resolves with the words that say how many. */
async function importFile(store: HistoryStore, chosen: File): Promise<string> {
  if (chosen.size > MAX_FILE_BYTES) {
    throw new Error(`${chosen.name} is too large: at most ${MAX_FILE_BYTES} bytes are imported.`)
  }
  const conversations = parseJson(await chosen.text())
  for (const conversation of conversations) {
    const known = await store.get(conversation.id)
    // A file cannot change what is stored, so another conversation of that id gets a new one.
    if (known && JSON.stringify(known) === JSON.stringify(conversation)) continue
    await store.add(known ? { ...conversation, id: crypto.randomUUID() } : conversation)
  }
  const { length } = conversations
  return length === 1 ? '1 conversation is imported.' : `${length} conversations are imported.`
}

/** Actions that the user can take on a conversation of the list. */
interface RowActions {
  open(): void
  rename(title: string): void
  remove(): void
  markdown(): void
  json(): void
  link(): void
}

function createRow({ title, changed, turnCount }: Heading, act: RowActions): HTMLElement {
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
function confirmed(
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

/** Offers a file to save. */
function save(name: string, content: string, type: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([content], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
