/** The history: a dialog that lists the conversations of this device. */
import type { Chat } from '../chat/chat.ts'
import type { Conversation } from '../chat/tree.ts'
import { button, element } from '../dom.ts'
import { saveFile } from '../files.ts'
import { notice, wordsOf } from '../notice.ts'
import { MAX_FILE_BYTES, parseJson, toFileName, toJson, toMarkdown } from './exchange-format.ts'
import { toLink } from './link.ts'
import { confirmed, createRow, type RowActions } from './row.ts'
import type { Heading, HistoryStore } from './store.ts'

interface Dialog {
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
  const list = element('ul', 'conversations')
  const empty = element('p', 'quiet')
  const { said, attempt } = createStatus()
  const search = createSearch(() => attempt(refresh))
  title.id = 'history-title'
  box.setAttribute('aria-labelledby', title.id)
  list.ariaLabel = 'Conversations'

  async function refresh(): Promise<void> {
    const headings = await store.list(search.value)
    const nothing = search.value === '' ? 'No conversation is stored yet.' : 'Nothing was found.'
    empty.textContent = headings.length === 0 ? nothing : ''
    list.replaceChildren(...headings.map(row))
  }

  function row(heading: Heading): HTMLElement {
    const open = (): void => {
      box.close()
      void chat.open(heading.id)
    }
    return createRow(heading, { open, ...actionsFor(heading, store, attempt) })
  }

  store.onChange(() => {
    if (box.open) attempt(refresh)
  })
  const tools = createTools(store, attempt)
  tools.append(button('Close', 'plain strong', () => box.close()))
  box.append(title, search, list, empty, said, tools)
  document.body.append(box)
  return {
    async show() {
      if (!box.open) box.showModal()
      await refresh().catch((error: unknown) => {
        box.close()
        notice(`The history cannot be read. ${wordsOf(error)}`, 'mild')
      })
    },
  }
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
  search.type = 'search'
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
  const tools = element('div', 'row')
  tools.append(
    file,
    button('Import', 'plain', () => file.click()),
    button('Export all', 'plain', () => attempt(exportAll)),
    confirmed('Delete all', 'Delete all for good?', 'plain', () =>
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
