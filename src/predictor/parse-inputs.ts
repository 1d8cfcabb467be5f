/** Checks inputs against a signature: completeness, types and bounds. */
import { type Schema, Validator } from '@cfworker/json-schema'
import { InoriginError } from '../error.ts'
import type { EnumerationMember, InputParameter, Signature } from '../types/index.ts'
import {
  describeValue,
  type Elements,
  fromHalf,
  isElementType,
  parseElements,
  roundToType,
} from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isObject } from '../values/objects.ts'
import { IMAGE_CLASSES, type ImageSource, isImageSource } from './image.ts'
import type { TokenRow } from './text.ts'

/** Checked value of one parameter, ready to become a tensor. */
export type ParsedInput =
  | { form: 'elements'; elements: Elements }
  | { form: 'image'; sources: readonly ImageSource[] }
  | { form: 'binary'; bytes: Uint8Array | Blob }
  | { form: 'list'; items: readonly unknown[] }
  | { form: 'dict'; values: Readonly<Record<string, unknown>> }
  /** Tokenized texts, one row for each. */
  | { form: 'tokens'; rows: readonly TokenRow[] }

/**
 * Returns the checked values by parameter name, with defaults. An optional input without a default
 * is absent. Throws `invalid_request` that names the first input which is missing, unknown, of a
 * wrong type, out of range or not a member of its enumeration.
 */
export function parseInputs(signature: Signature, inputs: unknown): Map<string, ParsedInput> {
  if (!isObject(inputs))
    return throwWrongType('inputs', 'an object of values by parameter name', inputs)
  const names = signature.inputs.map((parameter) => parameter.name)
  for (const name of Object.keys(inputs)) {
    if (!names.includes(name))
      throwInvalidInput(`inputs.${name}`, `unknown input. Expected: ${formatNames(names)}.`)
  }
  const given = new Map(Object.entries(inputs))
  const checked = new Map<string, ParsedInput>()
  for (const parameter of signature.inputs) {
    const path = `inputs.${parameter.name}`
    const value = given.get(parameter.name) ?? parameter.defaultValue ?? null
    if (value !== null) checked.set(parameter.name, parseInput(parameter, value, path))
    else if (!parameter.optional) throwInvalidInput(path, 'is required.')
  }
  return checked
}

function throwWrongType(path: string, wanted: string, value: unknown): never {
  throwInvalidInput(path, `must be ${wanted}, not ${describeValue(value)}.`)
}

/** Checks one value against its parameter. The message of an error begins with `path`. */
export function parseInput(parameter: InputParameter, value: unknown, path: string): ParsedInput {
  const { type, enumeration, range, schema } = parameter
  if (type === 'image') return { form: 'image', sources: parseImages(value, path) }
  if (type === 'binary') return { form: 'binary', bytes: parseBytes(value, path) }
  if (type === 'list' || type === 'dict') {
    const checked = parseStructure(type, value, path)
    if (schema) assertMatchesSchema(schema, value, path)
    return checked
  }
  if (!isElementType(type)) throwInvalidInput(path, `inputs of type ${type} are not supported.`)
  const members = enumeration?.length ? enumeration : null
  const elements = parseElements(type, members ? resolveMembers(members, value, path) : value, path)
  if (members) assertMembers(members, elements, path)
  if (range) assertRange(range, elements, path)
  return { form: 'elements', elements }
}

function parseImages(value: unknown, path: string): ImageSource[] {
  if (Array.isArray(value))
    return value.flatMap((each, index) =>
      isImageSource(each) ? each : throwNoImage(each, `${path}[${index}]`),
    )
  return isImageSource(value) ? [value] : throwNoImage(value, path)
}

const throwNoImage = (value: unknown, path: string) =>
  throwWrongType(path, `an image (${IMAGE_CLASSES.join(', ')})`, value)

function parseBytes(value: unknown, path: string): Uint8Array | Blob {
  if (value instanceof Blob || value instanceof Uint8Array) return value
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  // A page has decoded the sound of the file, but this input takes the file.
  if (isObject(value) && value['file'] instanceof Blob) return value['file']
  return throwWrongType(path, 'bytes (Uint8Array, ArrayBuffer or Blob)', value)
}

function parseStructure(type: 'list' | 'dict', value: unknown, path: string): ParsedInput {
  if (type === 'list' && Array.isArray(value)) return { form: 'list', items: value }
  if (type === 'dict' && describeValue(value) === 'Object')
    return { form: 'dict', values: value as Record<string, unknown> }
  return throwWrongType(path, type === 'list' ? 'an array' : 'an object of values by name', value)
}

type Members = readonly EnumerationMember[]

function resolveMembers(members: Members, value: unknown, path: string): unknown {
  if (Array.isArray(value))
    return value.map((item, index) => resolveMembers(members, item, `${path}[${index}]`))
  if (typeof value === 'object' && value !== null) return value
  const member =
    members.find((candidate) => isSameValue(candidate.value, value)) ??
    members.find((candidate) => candidate.name === value)
  return member ? member.value : throwNotMember(members, value, path)
}

function assertMembers(members: Members, elements: Elements, path: string): void {
  const stored = members.map(({ value }) => roundToType(elements.type, value))
  for (const element of iterateElements(elements))
    if (!stored.some((value) => isSameValue(value, element))) throwNotMember(members, element, path)
}

function throwNotMember(members: Members, value: unknown, path: string): never {
  const got = typeof value === 'string' ? JSON.stringify(value) : describeValue(value)
  const names = formatNames(members.map((member) => member.name))
  return throwInvalidInput(path, `must be one of ${names}, not ${got}.`)
}

function assertRange(range: { min?: number; max?: number }, elements: Elements, path: string) {
  const { min = -Infinity, max = Infinity } = range
  const [low = 0, high = 0] = [min, max].map((bound) => Number(roundToType(elements.type, bound)))
  for (const element of iterateElements(elements)) {
    if (typeof element === 'string' || (element >= low && element <= high)) continue
    const oneBound = max === Infinity ? `at least ${min}` : `at most ${max}`
    const isOne = max === Infinity || min === -Infinity
    const bounds = isOne ? oneBound : `from ${min} to ${max}`
    throwInvalidInput(path, `must be ${bounds}, not ${element}.`)
  }
}

function* iterateElements({ type, data }: Elements): Generator<number | bigint | string> {
  for (const element of data) yield type === 'float16' ? fromHalf(Number(element)) : element
}

/** Returns `true` if two values are equal, where a bool equals 0 or 1 and an int64 is a bigint. */
export const isSameValue = (member: unknown, value: unknown): boolean =>
  toComparable(member) === toComparable(value)

function toComparable(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value !== 'bigint') return value
  return BigInt.asIntN(53, value) === value ? Number(value) : value
}

const formatNames = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '))

// Checks lists and dicts against their JSON Schema. The library interprets schemas, because the
// content security policy of an app may forbid eval.

const validators = new WeakMap<object, Validator>()

/** Throws `invalid_request` that names the part of `value` which does not match the schema. */
function assertMatchesSchema(schema: Record<string, unknown>, value: unknown, path: string): void {
  const { valid, errors } = validate(schema, value, path)
  if (valid) return
  // The last error is the innermost. The others only say that a part is invalid.
  const { instanceLocation = '#', error = '' } = errors.at(-1) ?? {}
  throwInvalidInput(
    path + pointerToPath(instanceLocation),
    `does not match its schema. ${error}`.trim(),
  )
}

function validate(schema: Record<string, unknown>, value: unknown, path: string) {
  try {
    let validator = validators.get(schema)
    // The library modifies its argument, so it gets a copy.
    validator ??= new Validator(structuredClone(schema) as Schema, '2020-12')
    validators.set(schema, validator)
    return validator.validate(value)
  } catch (cause) {
    const what = `${path}: its schema in the catalog cannot be read: ${String(cause)}`
    throw new InoriginError('unavailable', what, { code: 'predictor_unusable', param: path, cause })
  }
}

/** Converts a pointer such as `#/1/red` to a path such as `[1].red`. */
const pointerToPath = (pointer: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`))
    .join('')
