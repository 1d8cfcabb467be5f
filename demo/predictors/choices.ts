/** Fields with few values: members of an enumeration, and booleans. */
import type { InputParameter } from '../../src/index.ts'
import { element } from '../dom.ts'
import { createLabelled, toCode, type Field } from './field.ts'

/** Creates a field that offers the names of an enumeration. */
export function createEnumerationField(parameter: InputParameter): Field {
  const { enumeration = [], defaultValue, optional } = parameter
  const frame = createLabelled(parameter)
  const select = element('select', '')
  if (optional && defaultValue === undefined) select.append(new Option('(left out)', ''))
  select.append(...enumeration.map(({ name }) => new Option(name, name)))
  const chosen = enumeration.find(({ name, value }) => [name, value].includes(defaultValue))
  if (chosen) select.value = chosen.name
  frame.add(select)
  return {
    element: frame.element,
    read: () =>
      select.value === '' ? undefined : { value: select.value, code: toCode(select.value) },
    onChange: (changed) => select.addEventListener('change', changed),
  }
}

/** Creates a checkbox. */
export function createBooleanField(parameter: InputParameter): Field {
  const frame = createLabelled(parameter)
  const box = element('input', '')
  box.type = 'checkbox'
  box.checked = parameter.defaultValue === true || parameter.defaultValue === 1
  frame.add(box)
  return {
    element: frame.element,
    read: () => ({ value: box.checked, code: String(box.checked) }),
    onChange: (changed) => box.addEventListener('change', changed),
  }
}
