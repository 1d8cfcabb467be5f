/** Checks of constraints against an independent validator. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { createConstraintCompiler } from '../../src/engine/constraint/compiler.ts'
import type { TokenTable } from '../../src/engine/constraint/vocabulary.ts'
import { InoriginError } from '../../src/error.ts'
import { createChance } from './random.ts'
import { randomParameters, randomSchema, type Sample, type Schema } from './schemas.ts'
import { takes, walk } from './walk.ts'

export interface Tally {
  schemas: number
  /** Refused as such. */
  refused: Map<string, number>
  /** Texts that ended by themselves and were checked. */
  texts: number
  /** Valid values that were tried, in the form that is written here. */
  values: number
  failures: string[]
}

const signal = new AbortController().signal

export function validator(schema: Schema): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, allErrors: false })
  addFormats(ajv)
  const validate = ajv.compile(schema)
  return (value) => validate(value) === true
}

/** JSON with a blank behind commas and colons. */
export function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const pairs = Object.entries(value).map(
    ([name, each]) => `${JSON.stringify(name)}: ${spaced(each)}`,
  )
  return `{${pairs.join(', ')}}`
}

/** Many random schemas: what is written under them is valid, and what is valid can be written. */
export async function tallySchemas(
  vocabulary: TokenTable,
  from: number,
  count: number,
): Promise<Tally> {
  const tally: Tally = { schemas: 0, refused: new Map(), texts: 0, values: 0, failures: [] }
  const constraints = createConstraintCompiler(vocabulary)
  for (let seed = from; seed < from + count; seed++) {
    const chance = createChance(seed)
    const sample = seed % 4 === 3 ? randomParameters(chance) : randomSchema(chance)
    const fail = (what: string, text: string): void => {
      tally.failures.push(`seed ${seed}: ${what}: ${text}\n  ${JSON.stringify(sample.schema)}`)
    }
    try {
      await checkOne(sample, fail)
    } catch (error) {
      if (!(error instanceof InoriginError) || error.kind !== 'invalid_request') throw error
      const why = error.message.replace(/^\S+/, '').slice(0, 60)
      tally.refused.set(why, (tally.refused.get(why) ?? 0) + 1)
    }
    tally.schemas += 1
  }
  constraints.close()
  return tally

  async function checkOne(
    { schema, value }: Sample,
    fail: (what: string, text: string) => void,
  ): Promise<void> {
    const valid = validator(schema)
    const constraint = { type: 'json', schema } as const
    for (let round = 0; round < 3; round++) {
      const matcher = await constraints.open(constraint, signal)
      const written = await walk(matcher, vocabulary, createChance(from + round), 10 + round * 20)
      matcher.close()
      if (written.stuck) fail('stuck', written.text)
      if (!written.ended) continue
      tally.texts += 1
      if (written.text.includes('\ufffd')) fail('no UTF-8', written.text)
      if (!isValid(valid, written.text)) fail('invalid', written.text)
    }
    for (let round = 0; round < 5; round++) {
      const made = value(createChance(from + round))
      // Numbers with bounds are not written with an exponent.
      if (!valid(made) || /\de\+/.test(JSON.stringify(made))) continue
      const matcher = await constraints.open(constraint, signal)
      tally.values += 1
      if (!(await takes(matcher, vocabulary, spaced(made)))) fail('not taken', spaced(made))
      matcher.close()
    }
  }
}

function isValid(valid: (value: unknown) => boolean, text: string): boolean {
  try {
    return valid(JSON.parse(text))
  } catch {
    return false
  }
}
