/** The dialog of the tools: which ones requests offer, how often they may be called, and new ones. */
import { button, element } from '../dom.ts'
import { showModal } from '../modal.ts'
import { BUILT_IN } from './built-in.ts'
import { createEditor } from './editor.ts'
import { readToolSettings, writeToolSettings, type OwnTool, type ToolSettings } from './store.ts'

const MAX_ROUNDS = 20

let opened: HTMLDialogElement | undefined

/** Opens the dialog, and calls `onChange` after each change. */
export function openDialog(onChange: () => void): void {
  if (opened?.isConnected) return
  const dialog = element('dialog', 'tools-dialog')
  const title = element('h2', '', 'Tools')
  title.id = 'tools-title'
  dialog.setAttribute('aria-labelledby', title.id)
  opened = dialog
  let settings = readToolSettings()

  function change(part: Partial<ToolSettings>): void {
    settings = { ...settings, ...part }
    writeToolSettings(settings)
    onChange()
  }

  const list = element('ul', 'tool-list')
  const taken = (): string[] => [...BUILT_IN, ...settings.own].map(({ name }) => name)

  function save(tool: OwnTool, before: string | undefined): void {
    const own = settings.own.filter(({ name }) => name !== before && name !== tool.name)
    const others = settings.enabled.filter((name) => name !== before && name !== tool.name)
    change({ own: [...own, tool], enabled: [...others, tool.name] })
    show()
  }

  function remove({ name }: OwnTool): void {
    change({
      own: settings.own.filter((tool) => tool.name !== name),
      enabled: settings.enabled.filter((one) => one !== name),
    })
    show()
  }

  function toggle(name: string, isOn: boolean): void {
    const others = settings.enabled.filter((one) => one !== name)
    change({ enabled: isOn ? [...others, name] : others })
  }

  function show(): void {
    const own = settings.own.map((tool) => {
      const row = element('div', 'row')
      row.append(
        button(`Edit ${tool.name}`, 'plain', () => editor.edit(tool)),
        button(`Delete ${tool.name}`, 'plain', () => remove(tool)),
      )
      return item(tool, settings, toggle, row)
    })
    list.replaceChildren(...BUILT_IN.map((tool) => item(tool, settings, toggle)), ...own)
  }

  const editor = createEditor(taken, save)
  const hint = 'A request offers these tools to the model. Each call waits for your approval.'
  dialog.append(title, element('p', 'quiet', hint), list, limits(settings, change), editor.section)
  const close = element('div', 'row')
  close.append(button('Close', 'plain', () => dialog.close()))
  dialog.append(close)
  show()
  showModal(dialog)
}

function item(
  { name, description }: { name: string; description: string },
  { enabled }: ToolSettings,
  toggle: (name: string, isOn: boolean) => void,
  ...rest: HTMLElement[]
): HTMLLIElement {
  const line = element('li', '')
  const label = element('label', '')
  const box = element('input', '')
  box.type = 'checkbox'
  box.checked = enabled.includes(name)
  box.addEventListener('change', () => toggle(name, box.checked))
  label.append(box, element('code', '', name), element('span', 'quiet', description))
  line.append(label, ...rest)
  return line
}

/** Creates the fields for how tools are called. */
function limits(
  { choice, maxRounds }: ToolSettings,
  change: (part: Partial<ToolSettings>) => void,
): HTMLElement {
  const form = element('form', 'form tool-limits')
  form.addEventListener('submit', (event) => event.preventDefault())
  const who = element('label', '', 'First request')
  const select = element('select', '')
  select.append(new Option('may call a tool', 'auto'), new Option('must call a tool', 'required'))
  select.value = choice
  select.addEventListener('change', () =>
    change({ choice: select.value === 'required' ? 'required' : 'auto' }),
  )
  who.append(select)
  const rounds = element('label', '', 'Limit of rounds')
  const field = element('input', '')
  Object.assign(field, { type: 'number', min: '1', max: String(MAX_ROUNDS), required: true })
  field.value = String(maxRounds)
  field.addEventListener('input', () => {
    if (field.validity.valid) change({ maxRounds: field.valueAsNumber })
  })
  rounds.append(field)
  form.append(who, rounds)
  return form
}
