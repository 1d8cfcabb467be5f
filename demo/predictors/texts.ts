/** Fields for texts, and for lists and dicts, which are JSON with a schema. */
import type { InputParameter } from '../../src/index.ts'
import { element } from '../dom.ts'
import { findMismatch, parseJson } from '../tools/schema.ts'
import { createLabelled, toCode, type Field } from './field.ts'

/** Creates a field for a text, or for a list of texts with one on each line. */
export function createTextField(parameter: InputParameter): Field {
  const frame = createLabelled(parameter)
  const text = element('textarea', '')
  text.rows = 2
  if (typeof parameter.defaultValue === 'string') text.value = parameter.defaultValue
  const label = element('label', 'predictor-check', '')
  const lines = element('input', '')
  lines.type = 'checkbox'
  label.append(lines, 'Each line is a text of a list')
  frame.add(text)
  frame.element.append(label)
  return {
    element: frame.element,
    read() {
      if (text.value === '') return undefined
      const value = lines.checked
        ? text.value.split('\n').filter((line) => line !== '')
        : text.value
      return { value, code: toCode(value) }
    },
    onChange: (changed) => frame.element.addEventListener('input', changed),
  }
}

/** Creates a field for a list or a dict, which is checked against the schema of its parameter. */
export function createJsonField(parameter: InputParameter): Field {
  const { type, schema, defaultValue } = parameter
  const frame = createLabelled(parameter)
  const text = element('textarea', 'predictor-code')
  text.rows = 4
  text.spellcheck = false
  text.placeholder = type === 'list' ? '[1, 2, 3]' : '{ "name": 1 }'
  if (defaultValue !== undefined) text.value = JSON.stringify(defaultValue, null, 1)
  frame.add(text)
  return {
    element: frame.element,
    read() {
      if (text.value.trim() === '') return undefined
      const parsed = parseJson(text.value)
      if (typeof parsed === 'string') throw new Error(parsed)
      const { value } = parsed
      const isList = Array.isArray(value)
      if (typeof value !== 'object' || value === null || isList !== (type === 'list')) {
        throw new Error(type === 'list' ? 'Write a list.' : 'Write an object.')
      }
      const mismatch = schema && findMismatch(schema, value)
      if (mismatch) throw new Error(mismatch)
      return { value, code: JSON.stringify(value) }
    },
    onChange: (changed) => text.addEventListener('input', changed),
  }
}
