import { InvalidParameter, PARAMETERS, type Parameter } from './chat/parameters.ts'
import { byId, element } from './dom.ts'
import type { ListedModel } from './listing.ts'
import { notice } from './notice.ts'
import { completions } from './wire/completions.ts'
import { messages } from './wire/messages.ts'
import { responses } from './wire/responses.ts'
import type { Settings, WireStyle } from './wire/style.ts'

const KEY = 'playground:settings'

const STYLES: Readonly<Record<string, WireStyle>> = { completions, messages, responses }

export interface SettingsForm {
  /** Returns the values of all fields that style and model take, and that are valid. */
  read(): Settings
  /** Returns `true` if all fields are valid. Otherwise says which one is not. */
  validate(): boolean
  style(): WireStyle
  /** Disables the fields that the model does not take. */
  fit(model: ListedModel): void
}

/** A parameter with its control, and the text below it. */
interface Field {
  parameter: Parameter
  control: HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement
  note: HTMLElement
}

/** Creates the settings of the panel, which are stored, and the switch between API styles. */
export function createSettings(): SettingsForm {
  const form = byId('settings-form', HTMLFormElement)
  const styles = byId('style', HTMLFieldSetElement)
  const fields = PARAMETERS.map(createField)
  let model: ListedModel | undefined
  let dismiss = (): void => {}

  function style(): WireStyle {
    const checked = styles.querySelector<HTMLInputElement>('input:checked')
    return STYLES[checked?.value ?? ''] ?? completions
  }

  function remember(): void {
    const values = fields.map(({ parameter, control }) => [parameter.name, control.value])
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(values)))
  }

  /** Returns why style or model do not take a parameter; `undefined` if they do. */
  function refusalOf({ name }: Parameter): string | undefined {
    const { thinking, structured_outputs } = model?.capabilities ?? {}
    const byStyle = style().unsupported[name]
    if (byStyle) return byStyle
    if (name === 'effort' && thinking?.supported === false) return 'This model does not reason.'
    const cannotFollow = name === 'schema' && structured_outputs?.supported === false
    return cannotFollow ? 'This model cannot follow a schema.' : undefined
  }

  /** Returns what is wrong with the text of a field; `undefined` if nothing is. */
  function problemOf({ parameter, control }: Field): string | undefined {
    if (control.disabled || control.value.trim() === '') return undefined
    try {
      const value = parameter.parse(control.value)
      const isKnown = parameter.name !== 'effort' || style().efforts.some((one) => one === value)
      return isKnown ? undefined : `The style under Requests has no effort "${control.value}".`
    } catch (error) {
      if (error instanceof InvalidParameter) return error.message
      throw error
    }
  }

  function check(field: Field): string | undefined {
    const { control, note, parameter } = field
    const refusal = refusalOf(parameter)
    control.disabled = refusal !== undefined
    const problem = problemOf(field)
    note.textContent = refusal ?? problem ?? parameter.hint ?? ''
    note.classList.toggle('bad', problem !== undefined)
    control.setAttribute('aria-invalid', String(problem !== undefined))
    return problem
  }

  const checkAll = (): string[] => fields.flatMap((field) => check(field) ?? [])

  restore(fields)
  form.prepend(...fields.map(({ control, note, parameter }) => box(parameter, control, note)))
  form.addEventListener('input', ({ target }) => {
    const changed = fields.find(({ control }) => control === target)
    if (changed) check(changed)
    remember()
  })
  // The browser clears the fields only after this event.
  form.addEventListener('reset', () =>
    setTimeout(() => {
      checkAll()
      remember()
    }),
  )
  form.addEventListener('submit', (event) => event.preventDefault())
  styles.addEventListener('change', checkAll)
  checkAll()

  return {
    style,
    validate() {
      dismiss()
      const [problem] = checkAll()
      if (problem) dismiss = notice(`${problem} Correct it in the settings.`, 'mild')
      return problem === undefined
    },
    read: () =>
      Object.fromEntries(
        fields
          .filter((field) => field.control.value.trim() !== '' && !field.control.disabled)
          .filter((field) => check(field) === undefined)
          .map(({ parameter, control }) => [parameter.name, parameter.parse(control.value)]),
      ),
    fit(next) {
      model = next
      checkAll()
    },
  }
}

function createField(parameter: Parameter): Field {
  const { name, kind, choices = [], placeholder = '', keys } = parameter
  const control = document.createElement(
    kind === 'choice' ? 'select' : kind === 'lines' ? 'textarea' : 'input',
  )
  control.name = name
  if (control instanceof HTMLSelectElement) {
    control.append(new Option('default', ''), ...choices.map((choice) => new Option(choice)))
  } else {
    control.placeholder = placeholder
    control.spellcheck = name === 'system'
    if (keys) control.inputMode = keys
    if (control instanceof HTMLTextAreaElement) control.rows = name === 'schema' ? 4 : 2
  }
  const note = element('p', 'field-note')
  note.id = `note-${name}`
  note.ariaLive = 'polite'
  control.setAttribute('aria-describedby', note.id)
  return { parameter, control, note }
}

function box({ label, kind }: Parameter, control: HTMLElement, note: HTMLElement): HTMLElement {
  const whole = element('div', kind === 'lines' ? 'field wide' : 'field')
  const caption = element('label', '', label)
  caption.append(control)
  whole.append(caption, note)
  return whole
}

/** Puts the stored texts into the fields. Ignores what is damaged. */
function restore(fields: readonly Field[]): void {
  let stored: unknown
  try {
    stored = JSON.parse(localStorage.getItem(KEY) ?? '{}')
  } catch {
    return
  }
  for (const { parameter, control } of fields) {
    const value: unknown = Reflect.get(Object(stored), parameter.name)
    if (typeof value === 'string') control.value = value
  }
}
