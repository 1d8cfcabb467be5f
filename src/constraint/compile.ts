/** Compiles one constraint, and loosens the schemas in it that the engine refuses. */
import {
  type Constraint,
  ConstraintError,
  type JsonConstraint,
  type JsonSchema,
} from './constraint.ts'
import { type Instance, MAX_ROW_ITEMS, nextTask } from './instance.ts'
import { writeLark } from './lark.ts'
import { isObject, type Loosened, mapValues } from './schema/plain.ts'
import { rewriteSchema } from './schema/rewrite.ts'

export interface CompiledGrammar {
  /** Number of the grammar in the instance. */
  number: number
  loosened: readonly Loosened[]
}

/**
 * Items in a row of the parser, for a grammar of the caller, which may be ambiguous. The rows of such a grammar grow with
 * the text, and the time of a token with the square of its row: 20 to 50 ms at 500 items. A list whose rule ends with
 * itself can have 240 elements then.
 */
const MAX_GROWN_ITEMS = 500
/** Items that each alternative of such a grammar may add to the first row. */
const ITEMS_PER_ALTERNATIVE = 2

/** Largest number that the engine divides by. It has a state for each remainder: 10,000 take 80 ms, 100,000 take 3 s. */
const MAX_DIVISOR = 10_000

/** A schema in a constraint. */
interface SchemaState {
  /** The schema as the engine gets it, and looser ones to use in its place. */
  schemas: JsonSchema[]
  loosened: Loosened[]
}

/** Compiles a constraint. Schemas that the engine refuses are loosened until it does not, unless they are strict. */
export async function compileConstraint(
  instance: Instance,
  constraint: Constraint,
  special: ReadonlyMap<string, number>,
): Promise<CompiledGrammar> {
  const states = new Map<JsonConstraint, SchemaState>()
  const schemaOf = (part: JsonConstraint): JsonSchema => {
    const state = states.get(part) ?? rewritePart(part)
    states.set(part, state)
    return state.schemas[0] ?? true
  }
  const mayGrow = limitDepth(() => hasGrammar(constraint))
  /** Returns the number of the grammar, or why the engine refuses it. */
  const compileOne = (each: Constraint): number | ConstraintError => {
    const source = limitDepth(() => writeLark(each, special, schemaOf))
    try {
      limitDivisors(source)
      return instance.compile(source, mayGrow ? countItems(source) : undefined)
    } catch (error) {
      if (error instanceof ConstraintError && error.code !== 'constraint_trap') return error
      throw error
    }
  }
  const canCompile = (part: JsonConstraint, state: SchemaState): boolean => {
    const result = compileOne(part)
    if (typeof result === 'number') instance.dropGrammar(result)
    else loosen(part, state, result)
    return typeof result === 'number'
  }

  let result = compileOne(constraint)
  if (typeof result !== 'number') {
    let isChanged = false
    for (const [part, state] of states) {
      while (!canCompile(part, state)) {
        isChanged = true
        await nextTask()
      }
    }
    if (isChanged) result = compileOne(constraint)
  }
  // Each schema compiles alone, so they are too large together.
  while (typeof result !== 'number') {
    const loose = [...states].filter(([part, state]) => !part.strict && state.schemas.length > 1)
    if (loose.length === 0) throw result
    for (const [part, state] of loose) loosen(part, state, result)
    await nextTask()
    result = compileOne(constraint)
  }
  const loosened = [...states.values()].flatMap((state) => state.loosened)
  return { number: result, loosened }
}

function hasGrammar(constraint: Constraint): boolean {
  const { type } = constraint
  if (type === 'sequence' || type === 'choice') return constraint.parts.some(hasGrammar)
  if (type === 'tagged') return hasGrammar(constraint.content)
  if (type === 'triggered' || type === 'separated') return constraint.tags.some(hasGrammar)
  return type === 'rest' ? hasGrammar(constraint.whole) : type === 'grammar'
}

/** Returns the items that a row may have for the source of a grammar. */
const countItems = (source: string): number =>
  Math.min(MAX_GROWN_ITEMS + ITEMS_PER_ALTERNATIVE * source.split('|').length, MAX_ROW_ITEMS)

/** Throws if a schema in the source has a divisor that takes the engine too long. */
function limitDivisors(source: string): void {
  for (const [, written = ''] of source.matchAll(/(?<!\\)"multipleOf"\s*:\s*([^\s,}]+)/g)) {
    const digits = written.replace(/e.*$/i, '').replace(/[-.]/g, '')
    if (!(Number(digits) > MAX_DIVISOR)) continue
    const what = `multipleOf: ${written} has too many digits.`
    throw new ConstraintError('constraint_too_slow', `${what} Use at most ${MAX_DIVISOR}.`)
  }
}

/** Rewrites a schema for the engine. Throws if it is strict and a keyword cannot be kept. */
function rewritePart(part: JsonConstraint): SchemaState {
  const { schema, path = '', strict = false, isOptional = false } = part
  try {
    const { schema: own, loosened, ignored } = limitDepth(() => rewriteSchema(schema, path))
    const [first] = loosened
    if (strict && first) throw toStrictError(first)
    return { schemas: [own, ...looserSchemas(own)], loosened: [...ignored, ...loosened] }
  } catch (error) {
    if (!(error instanceof ConstraintError) || strict || !isOptional) throw error
    return { schemas: [true], loosened: [{ path, keyword: 'schema' }] }
  }
}

/** Returns the error of a strict schema with a keyword that cannot be kept. */
function toStrictError({ path, keyword, expected }: Loosened): ConstraintError {
  const must = expected ? `must be ${expected}` : 'cannot be kept'
  const what = `The keyword ${keyword} at ${path || 'the root'} ${must}.`
  const todo = 'Leave it out, or leave out strict to have a looser schema.'
  return new ConstraintError('unsupported_constraint', `${what} ${todo}`, { path, keyword })
}

/** Takes the next looser schema. Throws if there is none. */
function loosen(part: JsonConstraint, state: SchemaState, refusal: ConstraintError): void {
  const { path = '', strict = false } = part
  if (strict || state.schemas.length < 2) {
    const what = `The schema at ${path || 'the root'} is not supported: ${refusal.message}`
    throw new ConstraintError(refusal.code, what, { path, keyword: 'schema', cause: refusal })
  }
  state.schemas.shift()
  if (state.loosened.every(({ keyword, path: own }) => keyword !== 'schema' || own !== path)) {
    state.loosened.push({ path, keyword: 'schema' })
  }
}

/** Returns the result of recursive work. Throws if it exhausts the stack. */
export function limitDepth<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const what = 'The format, or a tool, is nested too deeply. Make it flatter.'
    throw new ConstraintError('unsupported_constraint', what, { cause })
  }
}

/** Returns looser schemas, each allowing more than the one before: types of properties, the type, and any value. */
function looserSchemas(schema: JsonSchema): JsonSchema[] {
  if (!isObject(schema)) return [true]
  const { type, properties, required } = schema
  const typed = type === undefined ? [] : [{ type }]
  if (type !== 'object' || !isObject(properties)) return [...typed, true]
  const closed = schema['additionalProperties'] === false && !schema['patternProperties']
  const shaped = {
    type,
    properties: mapValues(properties, onlyType),
    ...(Array.isArray(required) && { required }),
    ...(closed && { additionalProperties: false }),
  }
  return [shaped, ...typed, true]
}

function onlyType(schema: unknown): JsonSchema {
  if (!isObject(schema)) return schema !== false
  const { type } = schema
  return type === undefined ? true : { type }
}
