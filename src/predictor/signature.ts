/** Checks inputs against a signature: completeness, types and bounds. */
import type { EnumerationMember, InputParameter, Signature } from '../types/index.ts'
import { type Elements, isElementType, kind, parseElements, rounded } from '../values/elements.ts'
import { fromHalf } from '../values/half.ts'
import { IMAGE_CLASSES, type ImageSource, isImageSource } from './image.ts'
import { refuse } from '../values/refuse.ts'
import { checkSchema } from './schema.ts'

/** Checked value of one parameter, ready to become a tensor. */
export type Checked =
  | { form: 'elements'; elements: Elements }
  | { form: 'image'; sources: readonly ImageSource[] }
  | { form: 'binary'; bytes: Uint8Array | Blob }
  | { form: 'list'; items: readonly unknown[] }
  | { form: 'dict'; values: Readonly<Record<string, unknown>> }
  /** Tokenized texts, one row for each. */
  | { form: 'tokens'; rows: readonly (readonly number[])[] }

/**
 * Returns the checked values by parameter name, with defaults. An optional input without a default
 * is absent. Throws `invalid_request` that names the first input which is missing, unknown, of a
 * wrong type, out of range or not a member of its enumeration.
 */
export function checkInputs(signature: Signature, inputs: unknown): Map<string, Checked> {
  if (typeof inputs !== 'object' || inputs === null || Array.isArray(inputs)) {
    refuse('inputs', `must be an object of values by parameter name, not ${kind(inputs)}.`)
  }
  const names = signature.inputs.map((parameter) => parameter.name)
  for (const name of Object.keys(inputs)) {
    if (!names.includes(name)) refuse(`inputs.${name}`, `unknown input. Expected: ${named(names)}.`)
  }
  const given = new Map(Object.entries(inputs))
  const checked = new Map<string, Checked>()
  for (const parameter of signature.inputs) {
    const path = `inputs.${parameter.name}`
    const value = given.get(parameter.name) ?? parameter.defaultValue ?? null
    if (value !== null) checked.set(parameter.name, checkValue(parameter, value, path))
    else if (!parameter.optional) refuse(path, 'is required.')
  }
  return checked
}

/** Checks one value against its parameter. The message of an error begins with `path`. */
export function checkValue(parameter: InputParameter, value: unknown, path: string): Checked {
  const { type, enumeration, range } = parameter
  if (type === 'image') return { form: 'image', sources: images(value, path) }
  if (type === 'binary') return { form: 'binary', bytes: bytes(value, path) }
  if (type === 'list' || type === 'dict') {
    const checked = type === 'list' ? list(value, path) : dict(value, path)
    if (parameter.schema) checkSchema(parameter.schema, value, path)
    return checked
  }
  if (!isElementType(type)) refuse(path, `inputs of type ${type} are not supported.`)
  const members = enumeration?.length ? enumeration : null
  const elements = parseElements(type, members ? resolve(members, value, path) : value, path)
  if (members) checkMembers(members, elements, path)
  if (range) checkRange(range, elements, path)
  return { form: 'elements', elements }
}

function images(value: unknown, path: string): ImageSource[] {
  if (Array.isArray(value)) return value.flatMap((each, index) => image(each, `${path}[${index}]`))
  return [image(value, path)]
}

function image(value: unknown, path: string): ImageSource {
  if (isImageSource(value)) return value
  return refuse(path, `must be an image (${IMAGE_CLASSES.join(', ')}), not ${kind(value)}.`)
}

function bytes(value: unknown, path: string): Uint8Array | Blob {
  if (value instanceof Blob || value instanceof Uint8Array) return value
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  return refuse(path, `must be bytes (Uint8Array, ArrayBuffer or Blob), not ${kind(value)}.`)
}

function list(value: unknown, path: string): Checked {
  if (Array.isArray(value)) return { form: 'list', items: value }
  return refuse(path, `must be an array, not ${kind(value)}.`)
}

function dict(value: unknown, path: string): Checked {
  const plain = kind(value) === 'Object'
  if (plain) return { form: 'dict', values: value as Record<string, unknown> }
  return refuse(path, `must be an object of values by name, not ${kind(value)}.`)
}

/** Replaces names of enumeration members by their values, in nested arrays too. */
function resolve(members: readonly EnumerationMember[], value: unknown, path: string): unknown {
  if (Array.isArray(value))
    return value.map((item, index) => resolve(members, item, `${path}[${index}]`))
  if (typeof value === 'object' && value !== null) return value
  const member =
    members.find((candidate) => same(candidate.value, value)) ??
    members.find((candidate) => candidate.name === value)
  return member ? member.value : notMember(members, value, path)
}

function checkMembers(
  members: readonly EnumerationMember[],
  elements: Elements,
  path: string,
): void {
  for (const element of values(elements)) {
    const stored = (member: EnumerationMember): unknown => rounded(elements.type, member.value)
    if (!members.some((member) => same(stored(member), element))) notMember(members, element, path)
  }
}

function notMember(members: readonly EnumerationMember[], value: unknown, path: string): never {
  const got = typeof value === 'string' ? JSON.stringify(value) : kind(value)
  return refuse(path, `must be one of ${named(members.map((member) => member.name))}, not ${got}.`)
}

function checkRange(range: { min?: number; max?: number }, elements: Elements, path: string): void {
  const { min = -Infinity, max = Infinity } = range
  const [low, high] = [Number(rounded(elements.type, min)), Number(rounded(elements.type, max))]
  for (const element of values(elements)) {
    if (typeof element === 'string' || (element >= low && element <= high)) continue
    const bounds =
      max === Infinity
        ? `at least ${min}`
        : min === -Infinity
          ? `at most ${max}`
          : `from ${min} to ${max}`
    refuse(path, `must be ${bounds}, not ${element}.`)
  }
}

function* values({ type, data }: Elements): Generator<number | bigint | string> {
  for (const element of data) yield type === 'float16' ? fromHalf(Number(element)) : element
}

/** Returns `true` if two values are equal, where a bool equals 0 or 1 and an int64 is a bigint. */
export function same(member: unknown, value: unknown): boolean {
  return comparable(member) === comparable(value)
}

function comparable(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value !== 'bigint') return value
  return BigInt.asIntN(53, value) === value ? Number(value) : value
}

function named(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ')
}
