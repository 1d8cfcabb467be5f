/** Converts JSON Schema to TypeScript. Rules that TypeScript cannot express widen the type. */
import { toMemberName, toLiteralType, toUnionType } from './code.ts'
import { isObject } from '../../values/objects.ts'

type Schema = Readonly<Record<string, unknown>>

/** Returns the type of a schema. Arrays of inputs are `readonly`, which accepts both kinds. */
export function toSchemaType(schema: unknown, side: 'input' | 'output'): string {
  const mark = side === 'input' ? 'readonly ' : ''
  return typeOf(schema, [])

  /** Returns the type of a subschema. `inside` holds the references to it, to stop at cycles. */
  function typeOf(given: unknown, inside: readonly string[]): string {
    if (given === false) return 'never'
    if (!isObject(given)) return 'unknown'
    const { const: constant, enum: values, $ref: reference, type } = given
    const deeper = (each: unknown): string => typeOf(each, inside)
    if (typeof reference === 'string') {
      return inside.includes(reference)
        ? 'unknown'
        : typeOf(resolveReference(schema, reference), [...inside, reference])
    }
    if (constant !== undefined) return toLiteralType(constant)
    if (Array.isArray(values)) return toUnionType(values.map(toLiteralType))
    for (const key of ['anyOf', 'oneOf'] as const) {
      const choices = given[key]
      if (Array.isArray(choices)) return toUnionType(choices.map(deeper))
    }
    const { allOf } = given
    if (Array.isArray(allOf)) return allOf.map((each) => toBracketedType(deeper(each))).join(' & ')
    if (Array.isArray(type))
      return toUnionType(type.map((each) => deeper({ ...given, type: each })))
    if (type === 'number' || type === 'integer') return 'number'
    if (type === 'string' || type === 'boolean' || type === 'null') return type
    if (type === 'array' || 'items' in given || 'prefixItems' in given)
      return arrayOf(given, deeper)
    if (type === 'object' || 'properties' in given) return objectOf(given, deeper)
    return 'unknown'
  }

  function arrayOf({ items, prefixItems }: Schema, deeper: (each: unknown) => string): string {
    // A missing schema becomes `unknown`, as `true` does.
    const others = `${toBracketedType(deeper(items))}[]`
    if (!Array.isArray(prefixItems)) return mark + others
    const first = prefixItems.map((each) => `${toBracketedType(deeper(each))}?`)
    return `${mark}[${[...first, ...(items === false ? [] : [`...${others}`])].join(', ')}]`
  }

  function objectOf(
    { properties, required, additionalProperties }: Schema,
    deeper: (each: unknown) => string,
  ): string {
    const needed = Array.isArray(required) ? required : []
    const members = Object.entries(isObject(properties) ? properties : {}).map(
      ([key, each]) => `${toMemberName(key)}${needed.includes(key) ? '' : '?'}: ${deeper(each)}`,
    )
    const isOpen = additionalProperties !== false
    // An index signature must fit all members, so beside others it can only be `unknown`.
    const others = members.length > 0 ? 'unknown' : deeper(additionalProperties ?? true)
    if (isOpen) members.push(`[key: string]: ${others}`)
    return members.length > 0 ? `{ ${members.join('; ')} }` : 'Record<string, never>'
  }
}

/** Returns the part of the schema that a reference names; one that is not found accepts all. */
function resolveReference(schema: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return {}
  const steps = reference.slice(1).split('/').slice(1)
  return steps.reduce<unknown>((at, step) => {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    return isObject(at) && Object.hasOwn(at, key) ? at[key] : {}
  }, schema)
}

const toBracketedType = (type: string): string =>
  /[ |&]/.test(type) && !/^\{[^{}]*\}$/.test(type) ? `(${type})` : type
