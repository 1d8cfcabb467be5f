/**
 * Writes instances as the grammar does: with `, ` and `: `, and with the properties in the schema's
 * order, which is fixed by design.
 */
import { isRefused } from '../../src/constraint/schema/empty.ts'
import { isObject, type Plain, StepBudget } from '../../src/constraint/schema/plain.ts'

type Keywords = Readonly<Record<string, unknown>>

/** Texts of an instance that are tried before it counts as refused. */
const MAX_TEXTS = 64
/** Steps to find the branches that a value may have. */
const MAX_STEPS = 20_000

/**
 * Yields texts of the instance. The order of properties may depend on the branches that apply, so
 * there are several.
 */
export function* writeInstance(schema: unknown, instance: unknown): Generator<string> {
  const seen = new Set<string>()
  const root = withScriptPatterns(schema)
  for (let turn = 0; turn < MAX_TEXTS; turn++) {
    const text = new Writer(root, turn).write([root], instance)
    if (!seen.has(text)) yield text
    seen.add(text)
  }
}

class Writer {
  readonly #root: unknown
  /** Branch of `anyOf` that comes first. */
  readonly #turn: number

  constructor(root: unknown, turn: number) {
    this.#root = root
    this.#turn = turn
  }

  write(schemas: readonly unknown[], instance: unknown): string {
    if (Array.isArray(instance)) {
      const parts = this.#expand(schemas, instance)
      const items = instance.map((each: unknown, index) =>
        this.write(
          parts.map((part) => elementOf(part['prefixItems'], index) ?? part['items']),
          each,
        ),
      )
      return `[${items.join(', ')}]`
    }
    if (!isObject(instance)) return JSON.stringify(instance).replaceAll('\u007f', '\\u007f')
    const parts = this.#expand(schemas, instance)
    const properties = parts.flatMap((part) => Object.keys(Object(part['properties'])))
    const required = parts.flatMap((part) =>
      Array.isArray(part['required']) ? part['required'].map(String) : [],
    )
    const names = new Set([...properties, ...required, ...Object.keys(instance)])
    const items = [...names]
      .filter((name) => Object.hasOwn(instance, name))
      .map((name) => {
        const below = parts.flatMap((part) => schemasOf(part, name))
        return `${JSON.stringify(name)}: ${this.write(below, instance[name])}`
      })
    return `{${items.join(', ')}}`
  }

  /** Returns the schemas with all that apply in place. */
  #expand(schemas: readonly unknown[], instance: unknown): Keywords[] {
    const found: Keywords[] = []
    const facts = {
      lookUp: (reference: string) => this.#resolve(reference) as Plain | undefined,
      steps: new StepBudget(MAX_STEPS),
    }
    const fits = (option: unknown): boolean => !isRefused(instance, option as Plain, facts)
    const add = (schema: unknown, depth: number): void => {
      if (!isObject(schema) || found.includes(schema) || depth > 50 || found.length > 500) return
      found.push(schema)
      for (const [keyword, value] of Object.entries(schema)) {
        if (keyword === '$ref') add(this.#resolve(String(value)), depth + 1)
        else if (keyword === 'const') add(toOrder(value), depth + 1)
        else if (keyword === 'enum')
          rotate(value, this.#turn).forEach((each) => add(toOrder(each), depth + 1))
        else if (keyword === 'allOf' && Array.isArray(value))
          value.forEach((each) => add(each, depth + 1))
        else if (keyword === 'anyOf')
          rotate(Array.isArray(value) ? value.filter(fits) : [], this.#turn).forEach((each) =>
            add(each, depth + 1),
          )
      }
    }
    schemas.forEach((schema) => add(schema, 0))
    return found
  }

  #resolve(reference: string): unknown {
    let value = this.#root
    for (const name of reference.split('/').slice(1)) value = Object(value)[name]
    return value
  }
}

const elementOf = (list: unknown, index: number): unknown =>
  Array.isArray(list) ? list[index] : undefined

function schemasOf(part: Keywords, name: string): unknown[] {
  const { properties, patternProperties, additionalProperties } = part
  const own = isObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : []
  const others = isObject(patternProperties) ? Object.values(patternProperties) : []
  return [...own, ...others, additionalProperties]
}

/** Returns a schema that has the order of a value's properties. */
function toOrder(value: unknown): unknown {
  if (Array.isArray(value)) return { prefixItems: value.map(toOrder) }
  if (!isObject(value)) return true
  const entries = Object.entries(value).map(([name, each]) => [name, toOrder(each)])
  return { properties: Object.fromEntries(entries) }
}

function rotate(list: unknown, turn: number): unknown[] {
  if (!Array.isArray(list) || list.length === 0) return []
  const at = turn % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

/** Returns the schema with patterns of scripts in the place of the engine's. */
function withScriptPatterns(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withScriptPatterns)
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([keyword, each]): [string, unknown] => {
    if (keyword === 'pattern' && typeof each === 'string') return [keyword, toScriptPattern(each)]
    if (keyword === 'enum') return [keyword, each]
    if (keyword !== 'patternProperties' || !isObject(each))
      return [keyword, withScriptPatterns(each)]
    const named = Object.entries(each).map(([pattern, schema]) => [
      toScriptPattern(pattern),
      withScriptPatterns(schema),
    ])
    return [keyword, Object.fromEntries(named)]
  })
  return Object.fromEntries(entries)
}

const toScriptPattern = (pattern: string): string =>
  pattern.replaceAll('(?s:.)', String.raw`[\s\S]`).replaceAll(String.raw`\x{`, String.raw`\u{`)
