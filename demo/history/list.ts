/** The list of the history: the conversations of this device, and what can be done with them. */
import type { Chat } from '../chat/chat.ts'
import type { Conversation } from '../chat/tree.ts'
import { button, element } from '../dom.ts'
import { saveFile } from '../files.ts'
import { wordsOf } from '../notice.ts'
import { MAX_FILE_BYTES, parseJson, toFileName, toJson, toMarkdown } from './exchange-format.ts'
import { toLink } from './link.ts'
import { confirmed, createRow, type Row, type RowActions } from './row.ts'
import { toHeading, type Heading, type HistoryStore } from './store.ts'

/** Resolves with the elements of the list, once it is filled. `leave` is called before a conversation is shown. */
export async function createList(
  store: HistoryStore,
  chat: Chat,
  leave: () => void,
): Promise<HTMLElement[]> {
  const list = element('ul', 'conversations')
  const empty = element('p', 'quiet')
  const { said, attempt } = createStatus()
  const search = createSearch(() => attempt(fill))
  /** Rows by the id of the conversation, the last changed one first. */
  let rows = new Map<string, Row>()
  list.ariaLabel = 'Conversations'

  function show(next: Map<string, Row>): void {
    rows = next
    const nothing = search.value === '' ? 'No conversation is stored yet.' : 'Nothing was found.'
    empty.textContent = rows.size === 0 ? nothing : ''
  }

  async function fill(): Promise<void> {
    const headings = await store.list(search.value)
    show(new Map(headings.map((heading) => [heading.id, toRow(heading)])))
    list.replaceChildren(...[...rows.values()].map(({ element: item }) => item))
  }

  function toRow(heading: Heading): Row {
    const open = (): void => {
      leave()
      attempt(() => chat.open(heading.id))
    }
    const row = createRow(heading, { open, ...actionsFor(heading, store, attempt) })
    row.setCurrent(heading.id === chat.id)
    return row
  }

  /** Shows a change of one conversation, and touches no other row. */
  async function update(id: string): Promise<void> {
    const found = await store.get(id)
    const known = rows.get(id)
    const [first] = rows.keys()
    const isSought = search.value !== ''
    // Saves of an answer that arrives leave the list as it is.
    if (found && known?.title === found.title && (isSought || first === id))
      return known.describe(toHeading(found))
    if (isSought) return fill()
    const rest = [...rows].filter(([other]) => other !== id)
    const hadFocus = known?.element.contains(document.activeElement) ?? false
    known?.element.remove()
    const row = found && toRow(toHeading(found))
    if (row) list.prepend(row.element)
    show(new Map(row ? [[id, row], ...rest] : rest))
    if (hadFocus) row?.focus()
  }

  store.onChange(({ id }) => attempt(() => update(id)))
  chat.onShow((shown) => {
    for (const [id, row] of rows) row.setCurrent(id === shown)
  })
  await fill()
  return [search, empty, list, said, createTools(store, attempt)]
}

/** Does a piece of work, and says what it resolves with or how it failed. */
type Attempt = (work: () => Promise<string | void>) => void

function createStatus(): { said: HTMLElement; attempt: Attempt } {
  const said = element('p', 'quiet')
  said.role = 'status'
  const attempt: Attempt = (work) =>
    void work().then(
      (done) => {
        if (done !== undefined) said.textContent = done
      },
      (error: unknown) => void (said.textContent = wordsOf(error)),
    )
  return { said, attempt }
}

function createSearch(onInput: () => void): HTMLInputElement {
  const search = element('input', '')
  search.type = 'text'
  search.enterKeyHint = 'search'
  search.placeholder = 'Search'
  search.ariaLabel = 'Search the history'
  search.addEventListener('input', onInput)
  return search
}

/** Returns what can be done with a conversation without leaving the list. */
function actionsFor(
  { id }: Heading,
  store: HistoryStore,
  attempt: Attempt,
): Omit<RowActions, 'open'> {
  /** Does a piece of work with the conversation, unless another tab has deleted it. */
  const use = (work: (found: Conversation) => Promise<string | void>) => (): void =>
    attempt(async () => {
      const found = await store.get(id)
      return found && work(found)
    })
  return {
    rename: (name) => attempt(() => store.rename(id, name)),
    remove: () => attempt(() => store.remove(id)),
    markdown: use(async (found) =>
      save(toFileName(found.title, 'md'), toMarkdown(found), 'text/markdown'),
    ),
    json: use(async (found) =>
      save(toFileName(found.title, 'json'), toJson([found]), 'application/json'),
    ),
    link: use(async (found) => {
      await navigator.clipboard.writeText(await toLink(found, location.href))
      return 'The link is copied. The conversation is in it, and is sent to no server.'
    }),
  }
}

/** Creates the buttons for all conversations. */
function createTools(store: HistoryStore, attempt: Attempt): HTMLElement {
  const file = element('input', '')
  file.type = 'file'
  file.accept = 'application/json,.json'
  file.hidden = true
  file.ariaLabel = 'File to import'
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? []
    if (chosen) attempt(() => importFile(store, chosen))
    file.value = ''
  })
  const exportAll = async (): Promise<void> =>
    save('inorigin-conversations.json', toJson(await store.all()), 'application/json')
  const tools = element('div', 'turn-tools side-tools')
  tools.append(
    file,
    button('Import', 'small', () => file.click()),
    button('Export all', 'small', () => attempt(exportAll)),
    confirmed('Delete all', 'Delete all for good?', 'small', () =>
      attempt(() => store.removeAll()),
    ),
  )
  return tools
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

function save(name: string, content: string, type: string): void {
  saveFile(name, new Blob([content], { type }))
}
