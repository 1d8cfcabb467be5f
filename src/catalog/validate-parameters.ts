/** Checks a predictor's parameters for contradictions that a schema cannot express. */
import type { PredictorEntry } from './schema.ts'

/** Reports a problem and its path. */
export type ReportProblem = (path: string, problem: string) => void

type Input = PredictorEntry['signature']['inputs'][number]
type Members = NonNullable<Input['enumeration']>

/**
 * Reports duplicate names, ranges and defaults that contradict, and bindings of unknown parameters.
 * Several values of an enumeration may share a name, since classes of data sets often do.
 */
export function validateParameters(
  { signature, implementations, states = [] }: PredictorEntry,
  path: string,
  report: ReportProblem,
): void {
  for (const side of ['inputs', 'outputs'] as const) {
    reportDuplicates(signature[side], 'name', `${path}.signature.${side}`, report)
  }
  for (const [index, input] of signature.inputs.entries()) {
    validateInput(input, `${path}.signature.inputs[${index}]`, report)
  }
  for (const [index, { input, output }] of states.entries()) {
    const at = `${path}.states[${index}]`
    if (!signature.inputs.some(({ name }) => name === input))
      report(`${at}.input`, `there is no input ${input}`)
    if (!signature.outputs.some(({ name }) => name === output))
      report(`${at}.output`, `there is no output ${output}`)
  }
  const known = new Set([...signature.inputs, ...signature.outputs].map(({ name }) => name))
  for (const [index, { bindings = {}, resources }] of implementations.entries()) {
    for (const [name, { text, steps = [] }] of Object.entries(bindings)) {
      const at = `${path}.implementations[${index}].bindings[${JSON.stringify(name)}]`
      if (!known.has(name)) report(at, `there is no parameter ${name}`)
      if (text && !resources.some((resource) => resource.name === text.tokenizer)) {
        report(`${at}.text.tokenizer`, `there is no resource ${text.tokenizer}`)
      }
      for (const [step, { labels }] of steps
        .map((each) => ({ labels: undefined, ...each }))
        .entries()) {
        if (
          labels &&
          'file' in labels &&
          !resources.some((resource) => resource.name === labels.file)
        )
          report(`${at}.steps[${step}].labels.file`, `there is no resource ${labels.file}`)
      }
    }
  }
}

function validateInput(input: Input, path: string, report: ReportProblem): void {
  const { range, enumeration = [], defaultValue } = input
  reportDuplicates(enumeration, 'name', `${path}.enumeration`, report)
  const { min = -Infinity, max = Infinity } = range ?? {}
  if (min > max) return report(`${path}.range`, `min ${min} is above max ${max}, so no value fits`)
  if (defaultValue === undefined || defaultValue === null) return
  if (enumeration.length > 0) {
    const isThere = isMember(enumeration, defaultValue)
    if (!isThere) report(`${path}.defaultValue`, 'is not a member of its enumeration')
  } else if (typeof defaultValue === 'number' && (defaultValue < min || defaultValue > max)) {
    report(`${path}.defaultValue`, `${defaultValue} is out of its range`)
  }
}

/**
 * Returns `true` if a value is a member, by name or value, with `true` equal to 1. For an array,
 * all items must be members. Tensors are not checked here, but when they are used.
 */
function isMember(members: Members, given: unknown): boolean {
  if (Array.isArray(given)) return given.every((one) => isMember(members, one))
  if (typeof given === 'object') return true
  return members.some(({ name, value }) => name === given || toNumber(value) === toNumber(given))
}

const toNumber = (value: unknown): unknown => (typeof value === 'boolean' ? Number(value) : value)

/** Reports each item of which an earlier item of the list has the same value of `field`. */
export function reportDuplicates<Field extends string>(
  items: ReadonlyArray<Readonly<Record<Field, string>>>,
  field: Field,
  path: string,
  report: ReportProblem,
): void {
  const values = items.map((item) => item[field])
  for (const [index, value] of values.entries()) {
    const first = values.indexOf(value)
    if (first !== index) {
      report(`${path}[${index}].${field}`, `${JSON.stringify(value)} is already ${path}[${first}]`)
    }
  }
}
