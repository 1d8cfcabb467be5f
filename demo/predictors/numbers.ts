/** Fields for numbers: one with bounds, or a tensor as nested lists. */
import type { InputParameter } from '../../src/index.ts'
import { element } from '../dom.ts'
import { createLabelled, toCode, type Field, type FieldValue } from './field.ts'

/** Integer types with the number of their bits. */
const INTEGER = /^(u?)int(\d+)$/

/** Returns `true` if a parameter holds numbers. */
export function isNumeric({ type }: InputParameter): boolean {
  return INTEGER.test(type) || type.startsWith('float')
}

/**
 * Creates a field for a number or a tensor. A number with both bounds has a slider, too. Tensors
 * are written as nested lists, such as `[[1, 2], [3, 4]]`.
 */
export function createNumberField(parameter: InputParameter): Field {
  const { range, defaultValue } = parameter
  const frame = createLabelled(parameter)
  const isBounded = range?.min !== undefined && range.max !== undefined
  const text = element(isBounded ? 'input' : 'textarea', '')
  text.inputMode = isBounded ? 'decimal' : 'text'
  text.autocomplete = 'off'
  text.spellcheck = false
  if (text instanceof HTMLTextAreaElement) text.rows = 1
  text.placeholder = isBounded ? '' : '1, or [1, 2, 3]'
  if (defaultValue !== undefined) text.value = toCode(defaultValue).replaceAll('n', '')
  frame.add(text)
  if (isBounded) frame.add(createSlider(parameter, text), `${parameter.name}, slider`)
  return {
    element: frame.element,
    read() {
      const written = text.value.trim()
      return written === '' ? undefined : toValue(parameter, written)
    },
    onChange: (changed) => frame.element.addEventListener('input', changed),
  }
}

function createSlider(
  { type, range }: InputParameter,
  text: HTMLInputElement | HTMLTextAreaElement,
): HTMLInputElement {
  const slider = element('input', '')
  const { min = 0, max = 1 } = range ?? {}
  const step = INTEGER.test(type) ? '1' : String((max - min) / 100)
  Object.assign(slider, { type: 'range', min: String(min), max: String(max), step })
  slider.value = text.value
  slider.addEventListener('input', () => (text.value = slider.value))
  text.addEventListener('input', () => (slider.value = text.value))
  return slider
}

function toValue(parameter: InputParameter, written: string): FieldValue {
  const value = parse(parameter, written)
  for (const number of flatten(value)) checkNumber(parameter, number)
  return { value, code: toCode(value), remote: toCode(value).replaceAll('n', '') }
}

function parse({ type }: InputParameter, written: string): unknown {
  // JSON would round integers of 64 bits.
  const isLong = type.endsWith('64') && INTEGER.test(type)
  if (isLong && /^[+-]?\d+$/.test(written)) return BigInt(written)
  try {
    return JSON.parse(written) as unknown
  } catch {
    throw new Error('Write a number, or a list such as [1, 2, 3].')
  }
}

function flatten(value: unknown): unknown[] {
  return Array.isArray(value) ? value.flatMap(flatten) : [value]
}

function checkNumber({ type, range }: InputParameter, number: unknown): void {
  if (typeof number !== 'number' && typeof number !== 'bigint') {
    throw new Error(`${JSON.stringify(number)} is not a number.`)
  }
  const [, unsigned, bits] = INTEGER.exec(type) ?? []
  if (bits !== undefined) {
    if (typeof number === 'number' && !Number.isInteger(number)) {
      throw new Error(`${number} is not a whole number.`)
    }
    const size = BigInt(unsigned ? bits : Number(bits) - 1)
    const [low, high] = [unsigned ? 0n : -(2n ** size), 2n ** size - 1n]
    if (number < low || number > high) throw new Error(`${number} does not fit into ${type}.`)
  }
  if (range?.min !== undefined && number < range.min) {
    throw new Error(`${number} is too small. The minimum is ${range.min}.`)
  }
  if (range?.max !== undefined && number > range.max) {
    throw new Error(`${number} is too large. The maximum is ${range.max}.`)
  }
}
