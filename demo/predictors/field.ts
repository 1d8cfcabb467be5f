/** The parts that all fields of a generated form have in common. */
import type { InputParameter } from '../../src/index.ts'
import { element } from '../dom.ts'

/** A value of a field, in each form in which a request needs it. */
export interface FieldValue {
  /** Value for `server.predict`. */
  value: unknown
  /** The same value as JavaScript, for the console of this page. */
  code: string
  /** Value in the body of `POST /v1/predictions/remote`, as JavaScript. Default: `code`. */
  remote?: string
}

/** A field of a generated form. */
export interface Field {
  element: HTMLElement
  /**
   * Returns the value; `undefined` to leave the input out.
   *
   * @throws Error with what is wrong, for the user.
   */
  read(): FieldValue | undefined
  /** Calls the function after each change of the value. */
  onChange(changed: () => void): void
  /** Ends what the field holds, such as a camera. */
  close?(): void
}

/** A control with its label, its description, and a place for what is wrong. */
export interface Labelled {
  element: HTMLElement
  /** Adds a control, which the label and the texts then describe. */
  add(control: HTMLElement, name?: string): void
}

/** Returns the id of an element that belongs to a parameter. Only one form is shown at a time. */
export function idOf({ name }: InputParameter, part: string): string {
  return `predictor-${name.replaceAll(/[^\w-]/g, '_')}-${part}`
}

/** Creates the frame of a field from its parameter. */
export function createLabelled(parameter: InputParameter): Labelled {
  const group = element('div', 'predictor-field wide')
  const label = element('label', '', parameter.name)
  const hint = element('p', 'quiet', describe(parameter))
  hint.id = idOf(parameter, 'hint')
  label.htmlFor = idOf(parameter, 'value')
  group.append(label, hint)
  let isFirst = true
  return {
    element: group,
    add(control, name) {
      if (isFirst) control.id = idOf(parameter, 'value')
      if (name !== undefined) control.ariaLabel = name
      isFirst = false
      control.setAttribute('aria-describedby', `${hint.id} ${idOf(parameter, 'problem')}`)
      group.append(control)
    },
  }
}

/** Returns the description of a parameter with its type, bounds and default. */
function describe({ type, range, optional, description, defaultValue }: InputParameter): string {
  const facts: string[] = [type]
  const { min, max } = range ?? {}
  if (min !== undefined && max !== undefined) facts.push(`from ${min} to ${max}`)
  else if (min !== undefined) facts.push(`at least ${min}`)
  else if (max !== undefined) facts.push(`at most ${max}`)
  if (optional) facts.push('optional')
  if (defaultValue !== undefined && typeof defaultValue !== 'object') {
    facts.push(`default: ${String(defaultValue)}`)
  }
  return `${facts.join(', ')}. ${description ?? ''}`.trim()
}

/** Returns a value as JavaScript in which integers of 64 bits keep their digits. */
export function toCode(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return `[${value.map(toCode).join(', ')}]`
  return JSON.stringify(value)
}
