/** Generates the TypeScript types of predictor parameters. */
import type { Implementation } from '../../catalog/schema.ts'
import type { InputParameter, OutputParameter } from '../../types/index.ts'
import { toStringLiteral, toUnionType } from './code.ts'
import { toSchemaType } from './schema-type.ts'

/** Returns the type of an input's values. */
export function toInputType(
  { name: parameter, type, enumeration, schema }: InputParameter,
  implementations: readonly Implementation[],
): string {
  if (implementations.some(({ bindings = {} }) => bindings[parameter]?.audio)) return 'SoundInput'
  if ((type === 'list' || type === 'dict') && schema) return toSchemaType(schema, 'input')
  const names = enumeration?.map(({ name }) => toStringLiteral(name)) ?? []
  const members = names.length > 0 ? `, ${toUnionType(names)}` : ''
  return `InputValue<${toStringLiteral(type)}${members}>`
}

/** Type of the value of an output with the step `top-k`, for one row. */
const RANKED_CLASSES = '{ label: string; index: number; score: number }[]'

/** Returns the type of an output's values. */
export function toOutputType(
  { name, type, enumeration, schema }: OutputParameter,
  implementations: readonly Implementation[],
): string {
  const bindings = implementations.map(({ bindings: all = {} }) =>
    Object.hasOwn(all, name) ? all[name] : undefined,
  )
  if ((type === 'list' || type === 'dict') && schema) return toSchemaType(schema, 'output')
  if (bindings[0]?.steps?.at(-1)?.step === 'top-k')
    return toUnionType([RANKED_CLASSES, `(${RANKED_CLASSES})[]`])
  if (type === 'dict') {
    const keys = bindings[0]?.keys
    const isSame = bindings.every((binding) => binding?.keys?.join() === keys?.join())
    if (keys && isSame)
      return `Record<${toUnionType(keys.map(toStringLiteral))}, number | bigint | boolean | string>`
  }
  const sizes = new Set(bindings.map((binding) => findMultiplicity(type, binding?.shape)))
  const [size] = sizes
  const hasWindows = implementations.some(({ bindings: all = {} }) =>
    Object.values(all).some(({ audio }) => audio?.window),
  )
  const known = hasWindows ? 'many' : sizes.size === 1 ? (size ?? null) : null
  if (enumeration?.length) {
    const one = toUnionType(enumeration.map((member) => toStringLiteral(member.name)))
    const many = `{ data: (${one})[]; shape: readonly number[] }`
    return toUnionType([...(known === 'many' ? [] : [one]), ...(known === 'one' ? [] : [many])])
  }
  return `OutputValue<${toStringLiteral(type)}${known ? `, ${toStringLiteral(known)}` : ''}>`
}

/** Returns whether an output of that shape has one value or many; `null` if it depends. */
function findMultiplicity(
  type: OutputParameter['type'],
  shape: readonly (number | null)[] | undefined,
): 'one' | 'many' | null {
  if (!shape) return null
  if (type === 'image') return shape.length === 3 || shape[0] === 1 ? 'one' : null
  if (shape.length === 0) return 'one'
  if (shape.length > 1) return 'many'
  if (shape[0] === null) return null
  return shape[0] === 1 ? 'one' : 'many'
}
