/** A form made from the signature of a predictor, with its result and the code of its request. */
import type { InputParameter, LoadProgress, PredictorHandle, Server } from '../../src/index.ts'
import { button, copies, element } from '../dom.ts'
import { preparing, runTime } from '../format.ts'
import { createLatest } from '../latest.ts'
import { wordsOf } from '../notice.ts'
import { createBooleanField, createEnumerationField } from './choices.ts'
import { toFetchCode, toPredictCode, type FieldValues } from './code.ts'
import { idOf, type Field, type FieldValue } from './field.ts'
import { createImageField } from './images.ts'
import { createNumberField, isNumeric } from './numbers.ts'
import { showOutputs } from './outputs.ts'
import { createBinaryField, createFloatField } from './sounds.ts'
import { createJsonField, createTextField } from './texts.ts'

export interface PredictorForm {
  element: HTMLElement
  close(): void
}

/** Creates the form of a predictor. */
export function createForm(server: Server, handle: PredictorHandle): PredictorForm {
  const { tag, signature } = handle
  const form = element('form', 'form predictor-form')
  const fields = signature.inputs.map((parameter) => checked(parameter))
  const said = element('p', 'verdict')
  const results = element('div', 'predictor-results')
  const code = createCode()
  const latest = createLatest()
  const submit = element('button', 'plain strong', 'Predict')
  const cancel = button('Cancel', 'plain', () => latest.giveUp())
  const row = element('div', 'row wide')
  said.role = 'status'
  results.ariaLabel = 'Outputs'
  results.role = 'region'
  form.noValidate = true
  form.ariaLabel = `Inputs of ${tag}`
  row.append(submit, cancel)
  setRunning(false)
  form.append(...fields.map(({ field }) => field.element), row)

  async function predict(values: FieldValues): Promise<void> {
    const signal = latest.begin()
    const onProgress = (progress: LoadProgress): void => {
      if (!signal.aborted) said.textContent = preparing(progress)
    }
    code.show(toPredictCode(tag, values), toFetchCode(tag, values, server.baseURL))
    said.textContent = 'Running …'
    setRunning(true)
    // The field may show another one when the result comes.
    const picture = pictureOf(values)
    try {
      const inputs = Object.fromEntries([...values].map(([name, { value }]) => [name, value]))
      const onText = (text: string): void => {
        if (!signal.aborted) results.replaceChildren(element('p', 'predictor-value', text))
      }
      const result = await handle.predict(inputs, { signal, onProgress, onText })
      results.replaceChildren(...showOutputs(result, signature, picture))
      said.textContent = runTime(result)
    } catch (error) {
      said.textContent = signal.aborted ? 'Canceled' : wordsOf(error)
    } finally {
      setRunning(false)
    }
  }

  function setRunning(isRunning: boolean): void {
    cancel.hidden = !isRunning
    submit.disabled = isRunning
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const values = readAll(fields)
    if (values) void predict(values)
    else form.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  })
  const whole = element('div', 'predictor-whole')
  whole.append(form, said, results, code.element)
  return {
    element: whole,
    close() {
      latest.giveUp()
      for (const { field } of fields) field.close?.()
    },
  }
}

/** Returns a copy of the first image. */
function pictureOf(values: FieldValues): ImageData | undefined {
  const canvas = [...values.values()]
    .map(({ value }) => value)
    .find((value) => value instanceof HTMLCanvasElement)
  return canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height)
}

/** Returns the values of all fields; `undefined` after showing what is wrong. */
function readAll(fields: readonly CheckedField[]): FieldValues | undefined {
  const read = fields.map((field) => [field.parameter.name, field.read()] as const)
  if (read.some(([, value]) => value === null)) return undefined
  return new Map(read.flatMap(([name, value]) => (value ? [[name, value] as const] : [])))
}

interface CheckedField {
  parameter: InputParameter
  field: Field
  /** Returns the value, `undefined` if it is left out, or `null` after showing what is wrong. */
  read(): FieldValue | undefined | null
}

/** Creates the field of a parameter, which shows what is wrong with its value as it is typed. */
function checked(parameter: InputParameter): CheckedField {
  const field = createField(parameter)
  const problem = element('p', 'predictor-problem')
  problem.id = idOf(parameter, 'problem')
  problem.role = 'status'
  field.element.append(problem)
  const control = field.element.querySelector(`#${idOf(parameter, 'value')}`)

  function read(isRequired: boolean): FieldValue | undefined | null {
    let value: FieldValue | undefined
    let error = ''
    try {
      value = field.read()
      const isMissing = value === undefined && !parameter.optional
      if (isRequired && isMissing && parameter.defaultValue === undefined) {
        error = 'This input is required.'
      }
    } catch (thrown) {
      error = wordsOf(thrown)
    }
    problem.textContent = error
    control?.setAttribute('aria-invalid', String(error !== ''))
    return error === '' ? value : null
  }
  field.onChange(() => void read(false))
  return { parameter, field, read: () => read(true) }
}

function createField(parameter: InputParameter): Field {
  const { type, enumeration } = parameter
  if (enumeration?.length) return createEnumerationField(parameter)
  if (type === 'image') return createImageField(parameter)
  if (type === 'bool') return createBooleanField(parameter)
  if (type === 'string') return createTextField(parameter)
  if (type === 'list' || type === 'dict') return createJsonField(parameter)
  if (type === 'binary') return createBinaryField(parameter)
  if (type.startsWith('float')) return createFloatField(parameter)
  if (isNumeric(parameter)) return createNumberField(parameter)
  throw new Error(`Inputs of type ${type} cannot be filled in here.`)
}

/** Creates the two forms of the request, which are hidden until there is one. */
function createCode(): { element: HTMLElement; show(predict: string, fetch: string): void } {
  const box = element('div', 'predictor-code-box')
  box.hidden = true
  const shown = ['server.predict', 'fetch'].map((name) => {
    const details = element('details', '')
    const text = element('pre', '')
    const copy = button('Copy', 'copy', () => {})
    text.tabIndex = 0
    text.ariaLabel = `Request with ${name}`
    copy.ariaLabel = `Copy the request with ${name}`
    copies(copy, () => text.textContent ?? '')
    details.append(element('summary', '', `As ${name}`), text, copy)
    box.append(details)
    return text
  })
  return {
    element: box,
    show(...texts) {
      box.hidden = false
      shown.forEach((text, at) => (text.textContent = texts[at] ?? ''))
    },
  }
}
