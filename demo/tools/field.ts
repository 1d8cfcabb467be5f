/** A labelled field of the editor, with a line for what is wrong with its value. */
import { element } from '../dom.ts'

export interface Field {
  input: HTMLInputElement | HTMLTextAreaElement
  /** Sets the check that runs on each input. It returns what is wrong. */
  check(find: (value: string) => string | undefined): void
  /** Checks now, and shows what is wrong. Returns `true` if nothing is. */
  update(): boolean
  /** Removes what was shown. */
  clear(): void
}

/** Adds a field to the form. */
export function addField(
  form: HTMLFormElement,
  text: string,
  input: HTMLInputElement | HTMLTextAreaElement,
): Field {
  const label = element('label', 'wide', text)
  const problem = element('p', 'tool-problem')
  problem.id = `tool-problem-${form.childElementCount}`
  let find: (value: string) => string | undefined = () => undefined
  input.setAttribute('aria-describedby', problem.id)
  input.spellcheck = false
  input.autocomplete = 'off'
  if (input instanceof HTMLTextAreaElement) input.rows = 4
  label.append(input)
  form.append(label, problem)

  function show(error: string | undefined): boolean {
    problem.textContent = error ?? ''
    input.ariaInvalid = String(error !== undefined)
    return error === undefined
  }
  const update = (): boolean => show(find(input.value))
  input.addEventListener('input', update)
  return {
    input,
    check: (next) => (find = next),
    update,
    clear: () => void show(undefined),
  }
}
