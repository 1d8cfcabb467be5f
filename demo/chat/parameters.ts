/** The parameters of a request: how each is shown, read and checked. */
import { SMOLLM2_SYSTEM } from '../smollm2.ts'
import { EFFORTS, type Settings } from '../wire/style.ts'
import { findSchemaProblem } from './schema-check.ts'

/** Largest number of stop sequences that the endpoints take. */
const MAX_STOP_SEQUENCES = 64

/** Thrown for a text that is no value of its parameter. The message is for the user. */
export class InvalidParameter extends Error {}

export interface Parameter<Name extends keyof Settings = keyof Settings> {
  name: Name
  label: string
  kind: 'line' | 'lines' | 'choice'
  /** Values of a choice. The default of the model comes first. */
  choices?: readonly string[]
  placeholder?: string
  hint?: string
  /** Kind of keyboard that a phone shows. Default: letters. */
  keys?: 'decimal' | 'numeric'
  /** Returns the value of a text that is not empty. Throws `InvalidParameter`. */
  parse(text: string): Settings[Name]
}

type NumberName = Exclude<
  { [Name in keyof Settings]-?: number extends Settings[Name] ? Name : never }[keyof Settings],
  undefined
>

interface Range {
  min?: number
  max?: number
  isInteger?: boolean
  placeholder?: string
  hint?: string
}

function number(name: NumberName, label: string, range: Range): Parameter<NumberName> {
  const { min = -Infinity, max = Infinity, isInteger = false, placeholder, hint } = range
  const what = isInteger ? 'a whole number' : 'a number'
  const between = Number.isFinite(max) ? ` between ${min} and ${max}` : ` of at least ${min}`
  const limits = Number.isFinite(min) ? between : ''
  return {
    name,
    label,
    kind: 'line',
    placeholder: placeholder ?? 'default',
    hint,
    keys: isInteger ? 'numeric' : 'decimal',
    parse(text) {
      // A phone may offer only a comma.
      const value = Number(text.trim().replace(',', '.'))
      const isValid = value >= min && value <= max && (!isInteger || Number.isSafeInteger(value))
      if (isValid && Number.isFinite(value)) return value
      throw new InvalidParameter(`${label} must be ${what}${limits}, got "${text.trim()}".`)
    },
  }
}

function json(text: string, label: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new InvalidParameter(`${label} is not JSON: ${why}`)
  }
}

const system: Parameter<'system'> = {
  name: 'system',
  label: 'System prompt',
  kind: 'lines',
  placeholder: 'none',
  hint: `SmolLM2 gets "${SMOLLM2_SYSTEM}" if this is empty and no tool is chosen.`,
  parse: (text) => text.trim(),
}

const stop: Parameter<'stop'> = {
  name: 'stop',
  label: 'Stop sequences',
  kind: 'lines',
  placeholder: 'none',
  hint: 'One per line. \\n is a line break.',
  parse(text) {
    const lines = text.split('\n').filter((line) => line !== '')
    if (lines.length > MAX_STOP_SEQUENCES) {
      throw new InvalidParameter(
        `At most ${MAX_STOP_SEQUENCES} stop sequences are possible, got ${lines.length}.`,
      )
    }
    return lines.map((line) => line.replaceAll('\\n', '\n'))
  },
}

const effort: Parameter<'effort'> = {
  name: 'effort',
  label: 'Reasoning effort',
  kind: 'choice',
  choices: EFFORTS,
  parse: (text) => EFFORTS.find((known) => known === text),
}

const schema: Parameter<'schema'> = {
  name: 'schema',
  label: 'JSON schema of the answer',
  kind: 'lines',
  placeholder: '{ "type": "object", "properties": { "name": { "type": "string" } } }',
  parse(text) {
    const value = json(text, 'The schema')
    const problem = findSchemaProblem(value)
    if (problem) throw new InvalidParameter(problem)
    return value as Record<string, unknown>
  },
}

const logitBias: Parameter<'logitBias'> = {
  name: 'logitBias',
  label: 'Logit bias',
  kind: 'line',
  placeholder: '{ "42": -100 }',
  parse(text) {
    const value = json(text, 'Logit bias')
    const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
    const isBias = ([id, bias]: [string, unknown]): boolean =>
      /^\d{1,9}$/.test(id) && typeof bias === 'number' && Math.abs(bias) <= 100
    if (!Array.isArray(value) && entries.length > 0 && entries.every(isBias)) {
      return value as Record<string, number>
    }
    throw new InvalidParameter(
      'Logit bias must map token ids to numbers between -100 and 100, such as { "42": -100 }.',
    )
  },
}

/** All parameters, in the order of the form. */
export const PARAMETERS: readonly Parameter[] = [
  system,
  number('temperature', 'Temperature', { min: 0, max: 2 }),
  number('maxTokens', 'Max tokens', { min: 1, isInteger: true }),
  number('seed', 'Seed', { isInteger: true, placeholder: 'random' }),
  number('topP', 'Top p', { min: 0, max: 1 }),
  number('topK', 'Top k', { min: 0, isInteger: true }),
  number('minP', 'Min p', { min: 0, max: 1 }),
  number('frequencyPenalty', 'Frequency penalty', { min: -2, max: 2 }),
  number('presencePenalty', 'Presence penalty', { min: -2, max: 2 }),
  number('repetitionPenalty', 'Repetition penalty', { min: 0.01, max: 100 }),
  effort,
  stop,
  schema,
  logitBias,
]
