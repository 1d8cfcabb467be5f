/** Ways to add a model: by its repository on the hub, by an address, and by files of the visitor. */
import type { Server } from '../../src/index.ts'
import { element } from '../dom.ts'
import { addOwnEntry, toEntry } from '../own-catalog.ts'
import { troubleWith } from '../trouble.ts'
import { droppedFiles, type ChosenFiles, type Drops } from './dropped.ts'
import { importFiles, importUrl } from './import.ts'

export interface AddOptions {
  server: Server
  signal: AbortSignal
  /** Called after a model was added. */
  onAdded(): Promise<void>
  /** Files that are dropped elsewhere. */
  drops: Drops
}

export function createAdd({ server, signal, onAdded, drops }: AddOptions): HTMLElement {
  const section = element('section', '')
  const head = element('h2', '', 'Add a model')
  const ways = element('div', 'add')
  const said = element('p', 'quiet')
  head.id = 'add-models'
  section.setAttribute('aria-labelledby', head.id)
  said.role = 'status'

  function run(what: string, work: () => Promise<string>): void {
    said.textContent = `Adding ${what} …`
    work()
      .catch((error: unknown) => (signal.aborted ? '' : troubleWith(what, error)))
      .then((words) => (said.textContent = words))
      .catch(() => {})
  }

  function importAll(files: ChosenFiles): void {
    const onProgress = (words: string): void => void (said.textContent = words)
    run('the files', async () => {
      const words = await importFiles(server, files, { signal, onProgress })
      await onAdded()
      return words
    })
  }

  function addByName(text: string): void {
    run(text, async () => {
      const entry = toEntry(text)
      if (entry) {
        addOwnEntry(entry)
        location.reload()
        return 'The page is loaded again with this model in its catalog.'
      }
      if (!URL.canParse(text)) return `"${text}" is neither owner/name nor an address.`
      const url = new URL(text)
      if (url.pathname.endsWith('.json')) {
        location.search = new URLSearchParams({ catalog: url.href }).toString()
        return 'The page is loaded again with this catalog.'
      }
      const onProgress = (words: string): void => void (said.textContent = words)
      const words = await importUrl(server, url, { signal, onProgress })
      await onAdded()
      return words
    })
  }

  ways.append(nameForm(addByName), dropZone(importAll))
  section.append(head, ways, said)
  drops.take = importAll
  signal.addEventListener('abort', () => (drops.take = undefined))
  for (const files of drops.waiting.splice(0)) importAll(files)
  return section
}

function nameForm(add: (text: string) => void): HTMLElement {
  const form = element('form', '')
  const label = element('label', '', 'Repository of the hub, or an address')
  const input = element('input', '')
  input.placeholder = 'owner/name, owner/name/file.gguf or https://…'
  input.required = true
  label.append(input)
  const submit = element('button', 'plain', 'Add')
  const note =
    'owner/name is looked up at huggingface.co, and so is owner/name/file.gguf. An address ends in ' +
    '.gguf or .onnx for a model of one file, or in .json for a catalog. Its server must allow this ' +
    'page by CORS.'
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
