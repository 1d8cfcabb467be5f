/** A column of the comparison: a model with settings, its answer, and its figures. */
import { button, element } from '../dom.ts'
import { createMarkdownView, type MarkdownView } from '../markdown/view.ts'
import { figuresOf, type ColumnResult, type ColumnSettings } from './result.ts'

/** A model that can be chosen. */
export interface Choice {
  id: string
  name: string
}

export interface Column {
  element: HTMLElement
  /** Names the column by its number, which changes when another one is removed. */
  setNumber(number: number): void
  /** Selects a model. */
  choose(model: string): void
  /** Returns the settings; `null` after showing which field is wrong. */
  read(): ColumnSettings | null
  /** Shows a state, such as the progress of the load. */
  say(text: string): void
  /** Shows the result so far, whose text only grows. */
  show(result: ColumnResult): void
  /** Resolves when the whole text is shown. */
  end(): Promise<void>
  clear(): void
  setBusy(isBusy: boolean): void
}

/** Creates a column. It calls `remove` when the user removes it. */
export function createColumn(choices: readonly Choice[], remove: () => void): Column {
  const column = element('section', 'compare-column')
  const fields = createFields(choices)
  const title = element('h3', '')
  const said = element('p', 'quiet')
  const answer = element('div', 'answer compare-answer')
  const figures = element('dl', 'facts')
  const head = element('div', 'compare-head')
  const bin = button('Remove', 'plain', remove)
  said.role = 'status'
  answer.tabIndex = 0
  answer.role = 'region'
  head.append(title, bin)
  column.append(head, fields.form, said, answer, figures)

  let markdown: MarkdownView | undefined
  let shown = ''

  function clear(): void {
    markdown?.close()
    markdown = undefined
    answer.replaceChildren()
    answer.classList.remove('plain-text')
    show({ text: '' })
  }

  function show({ text, error, ...rest }: Omit<ColumnResult, 'settings'>): void {
    shown = text
    if (text !== '') {
      markdown ??= createMarkdownView(answer)
      markdown.show(text, () => {})
    }
    said.textContent = error ?? ''
    said.classList.toggle('compare-error', error !== undefined)
    figures.replaceChildren(
      ...figuresOf(rest).flatMap(([name, figure]) => [
        element('dt', '', name),
        element('dd', '', figure),
      ]),
    )
  }

  return {
    element: column,
    setNumber(number) {
      title.textContent = `Column ${number}`
      column.ariaLabel = title.textContent
      bin.ariaLabel = `Remove column ${number}`
      answer.ariaLabel = `Answer ${number}`
    },
    choose: fields.choose,
    read: fields.read,
    say: (text) => (said.textContent = text),
    show,
    end: async () => markdown?.end(shown),
    clear,
    setBusy(isBusy) {
      bin.disabled = isBusy
      fields.setDisabled(isBusy)
      answer.ariaBusy = String(isBusy)
    },
  }
}

interface Fields {
  form: HTMLFormElement
  choose(model: string): void
  read(): ColumnSettings | null
  setDisabled(isDisabled: boolean): void
}

function createFields(choices: readonly Choice[]): Fields {
  const form = element('form', 'form compare-form')
  const model = labelled(form, 'Model', element('select', ''), 'wide')
  const system = labelled(form, 'System prompt', element('textarea', ''), 'wide')
  const temperature = labelled(form, 'Temperature', numberInput('0', '2', 'any'))
  const maxTokens = labelled(form, 'Max tokens', numberInput('1', '', '1'))
  const seed = labelled(form, 'Seed', numberInput('', '', '1'))
  system.rows = 1
  system.placeholder = 'none'
  model.append(...choices.map(({ id, name }) => new Option(name, id)))
  form.noValidate = true
  form.addEventListener('submit', (event) => event.preventDefault())
  return {
    form,
    choose(next) {
      model.value = next
    },
    read() {
      if (![temperature, maxTokens, seed].every((field) => field.reportValidity())) return null
      const prompt = system.value.trim()
      return {
        model: model.value,
        system: prompt === '' ? undefined : prompt,
        temperature: toNumber(temperature),
        maxTokens: toNumber(maxTokens),
        seed: toNumber(seed),
      }
    },
    setDisabled(isDisabled) {
      for (const field of [model, system, temperature, maxTokens, seed]) field.disabled = isDisabled
    },
  }
}

function numberInput(min: string, max: string, step: string): HTMLInputElement {
  const input = element('input', '')
  Object.assign(input, { type: 'number', min, max, step, placeholder: 'default' })
  return input
}

function labelled<T extends HTMLElement>(
  form: HTMLFormElement,
  text: string,
  control: T,
  className = '',
): T {
  const label = element('label', className, text)
  label.append(control)
  form.append(label)
  return control
}

function toNumber({ value }: HTMLInputElement): number | undefined {
  return value === '' ? undefined : Number(value)
}
