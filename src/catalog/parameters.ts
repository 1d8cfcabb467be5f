/** What a schema cannot say of a predictor's parameters: whether what is said of them goes together. */
import type { PredictorEntry } from './schema.ts'

/** Told of what is wrong, and where. */
export type Say = (path: string, problem: string) => void

type Input = PredictorEntry['signature']['inputs'][number]
type Members = NonNullable<Input['enumeration']>

/** Tells of names that are there twice, of bounds and defaults that nothing fits, and of bindings of nothing. */
export function checkParameters(
  { signature, implementations }: PredictorEntry,
  path: string,
  say: Say,
): void {
  for (const side of ['inputs', 'outputs'] as const) {
    const list = `${path}.signature.${side}`
    repeated(signature[side].map(({ name }) => name), list, 'name', say)
    for (const [index, { enumeration = [] }] of signature[side].entries()) {
      repeated(enumeration.map(({ name }) => name), `${list}[${index}].enumeration`, 'name', say)
    }
  }
  for (const [index, input] of signature.inputs.entries()) {
    checkInput(input, `${path}.signature.inputs[${index}]`, say)
  }
  const known = new Set([...signature.inputs, ...signature.outputs].map(({ name }) => name))
  for (const [index, { bindings = {}, resources }] of implementations.entries()) {
    for (const [name, { text }] of Object.entries(bindings)) {
      const at = `${path}.implementations[${index}].bindings[${JSON.stringify(name)}]`
      if (!known.has(name)) say(at, `there is no parameter ${name}`)
      if (text && !resources.some((resource) => resource.name === text.tokenizer)) {
        say(`${at}.text.tokenizer`, `there is no resource ${text.tokenizer}`)
      }
    }
  }
}

function checkInput({ range, enumeration = [], defaultValue }: Input, path: string, say: Say): void {
  const { min = -Infinity, max = Infinity } = range ?? {}
  if (min > max) return say(`${path}.range`, `min ${min} is above max ${max}, so no value fits`)
  if (defaultValue === undefined || defaultValue === null) return
  if (enumeration.length > 0) {
    if (!isMember(enumeration, defaultValue)) say(`${path}.defaultValue`, 'is none of its enumeration')
  } else if (typeof defaultValue === 'number' && (defaultValue < min || defaultValue > max)) {
    say(`${path}.defaultValue`, `${defaultValue} is out of its range`)
  }
}

/** By name or value; of several, all of them. */
function isMember(members: Members, given: unknown): boolean {
  if (Array.isArray(given)) return given.every((one) => isMember(members, one))
  return members.some(({ name, value }) => name === given || value === given)
}

/** Tells of values that are in the list before, where a field of its items has them. */
export function repeated(values: readonly string[], path: string, field: string, say: Say): void {
  for (const [index, value] of values.entries()) {
    const first = values.indexOf(value)
    if (first !== index) {
      say(`${path}[${index}].${field}`, `${JSON.stringify(value)} is already ${path}[${first}]`)
    }
  }
}
