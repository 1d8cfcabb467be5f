/** Ways to add a model: by its repository on the hub, by an address, and by files of the visitor. */
import type { Server, Tag } from '../../src/index.ts'
import { button, element } from '../dom.ts'
import { describeForeignModel } from '../formats.ts'
import { wordsOf } from '../notice.ts'
import { codeOf, isPlain, troubleWith } from '../trouble.ts'
import { addSource, type Added } from './add-source.ts'
import { droppedFiles, type ChosenFiles, type Drops } from './dropped.ts'
import { importFiles, importUrl } from './import.ts'
import { RepositoryProblem } from './repository.ts'
import { toSource } from './source.ts'

export interface AddOptions {
  server: Server
  /** Starts the server again with the changed catalog. */
  restart(): Promise<void>
  signal: AbortSignal
  /** Called after a model was added. */
  onAdded(): Promise<void>
  /** Selects a model for the chat. */
  select(tag: Tag): void
  /** Files that are dropped elsewhere. */
  drops: Drops
}

export function createAdd(options: AddOptions): HTMLElement {
  const { server, signal, onAdded, select, drops } = options
  const section = element('section', '')
  const head = element('h2', '', 'Add a model')
  const ways = element('div', 'add')
  const said = element('p', 'quiet')
  const row = element('div', 'row')
  head.id = 'add-models'
  section.setAttribute('aria-labelledby', head.id)
  said.role = 'status'
  const say = (words: string): void => void (said.textContent = words)
  /** Promise of the work before, so that the server does not start twice at once. */
  let before: Promise<unknown> = Promise.resolve()

  /** Adds a model, shows how far it is, and selects it. */
  function run(what: string, work: () => Promise<Added | string>): void {
    row.replaceChildren()
    say(`Adding ${what} …`)
    head.scrollIntoView({ block: 'nearest' })
    const done = before.then(work)
    before = done.catch(() => {})
    done
      .then(async (added) => {
        if (typeof added === 'string') return say(added)
        await onAdded()
        say(added.canChat ? `${added.words} It is selected now.` : added.words)
        if (added.canChat) select(added.tag)
      })
      .catch((error: unknown) => {
        if (signal.aborted) return
        say(describe(what, error))
        if (canRetry(error)) row.append(button('Try again', 'plain', () => run(what, work)))
      })
  }

  function importAll({ name, files }: ChosenFiles): void {
    const given = files instanceof FileSystemDirectoryHandle ? files : withoutImages(files)
    const foreign = Array.isArray(given) ? describeForeign(given) : undefined
    run(name, async () => foreign ?? importFiles(server, { name, files: given }, { signal, say }))
  }

  function addByName(text: string): void {
    run(text, async () => {
      const source = toSource(text)
      if (source) return addSource(source, { ...options, say })
      if (!URL.canParse(text)) return `"${text}" is neither owner/name nor an address.`
      const url = new URL(text)
      if (!url.pathname.endsWith('.json')) return importUrl(server, url, { signal, say })
      location.search = new URLSearchParams({ catalog: url.href }).toString()
      return 'The page is loaded again with this catalog.'
    })
  }

  ways.append(nameForm(addByName), dropZone(importAll))
  section.append(head, said, row, ways)
  drops.take = importAll
  signal.addEventListener('abort', () => (drops.take = undefined))
  // The section is in the page only after this task.
  queueMicrotask(() => {
    for (const files of drops.waiting.splice(0)) importAll(files)
  })
  return section
}

/** Returns the files of a drop that may be parts of a model. */
const withoutImages = (files: readonly File[]): File[] =>
  files.filter(({ type }) => !type.startsWith('image/'))

/** Returns what to do with files of which none is a model that browsers load, if one is known to be another. */
function describeForeign(files: readonly File[]): string | undefined {
  if (files.some(({ name }) => /\.(onnx|gguf)$/i.test(name))) return undefined
  return files.map(({ name }) => describeForeignModel(name)).find(Boolean)
}

/** Returns why something was not added. */
function describe(what: string, error: unknown): string {
  return isPlain(error) ? troubleWith(what, error) : wordsOf(error)
}

const canRetry = (error: unknown): boolean =>
  error instanceof RepositoryProblem
    ? error.canRetry
    : ['hub_unreachable', 'resource_unreachable'].includes(codeOf(error) ?? '')

function nameForm(add: (text: string) => void): HTMLElement {
  const form = element('form', '')
  const label = element('label', '', 'Repository of the hub, or an address')
  const input = element('input', '')
  input.placeholder = 'owner/name, owner/name/file.gguf or https://…'
  input.required = true
  label.append(input)
  const submit = element('button', 'plain', 'Add')
  const note =
    'owner/name is looked up at huggingface.co, and so is owner/name/file.gguf, before anything is ' +
    'downloaded. An address ends in .gguf or .onnx for a model of one file, or in .json for a catalog. ' +
    'Its server must allow this page by CORS.'
  form.append(label, element('p', 'quiet', note), submit)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    add(input.value.trim())
  })
  return form
}

function dropZone(add: (files: ChosenFiles) => void): HTMLElement {
  const zone = element('div', 'drop')
  const files = picker('Files of a model', false, add)
  const folder = picker('A folder of a model', true, add)
  zone.append(
    element(
      'p',
      '',
      'Drop a GGUF file here, an ONNX file with its weights, or a folder of a chat model.',
    ),
    element('p', 'quiet', 'The files stay in this browser. They are copied into its storage.'),
    files,
    folder,
  )
  zone.addEventListener('dragover', (event) => {
    event.preventDefault()
    zone.classList.add('over')
  })
  zone.addEventListener('dragleave', () => zone.classList.remove('over'))
  zone.addEventListener('drop', (event) => {
    event.preventDefault()
    zone.classList.remove('over')
    if (event.dataTransfer) void droppedFiles(event.dataTransfer).then(add)
  })
  return zone
}

function picker(title: string, isFolder: boolean, add: (files: ChosenFiles) => void): HTMLElement {
  const label = element('label', '', title)
  const input = element('input', '')
  input.type = 'file'
  input.multiple = true
  input.webkitdirectory = isFolder
  label.append(input)
  input.addEventListener('change', () => {
    const chosen = [...(input.files ?? [])]
    const path = chosen[0]?.webkitRelativePath.split('/')[0]
    if (chosen.length > 0) add({ name: path || chosen[0]?.name || 'model', files: chosen })
    input.value = ''
  })
  return label
}
