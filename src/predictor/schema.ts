/** JSON Schema of lists and dicts. Schemas are interpreted: an app's policy may forbid eval. */
import { type Schema, Validator } from '@cfworker/json-schema'
import { InoriginError } from '../error.ts'
import { refuse } from '../values/refuse.ts'

const validators = new WeakMap<object, Validator>()

/** Throws `invalid_request` that names the part of `value` which the schema does not allow. */
export function checkSchema(schema: Record<string, unknown>, value: unknown, path: string): void {
  const { valid, errors } = validate(schema, value, path)
  if (valid) return
  // Those around it only say that a part is at fault.
  const innermost = errors.at(-1)
  const at = `${path}${placeOf(innermost?.instanceLocation ?? '#')}`
  refuse(at, `is not as its schema says. ${innermost?.error ?? ''}`.trim())
}

function validate(
  schema: Record<string, unknown>,
  value: unknown,
  path: string,
): ReturnType<Validator['validate']> {
  try {
    let validator = validators.get(schema)
    // The library writes into what it is given.
    validator ??= new Validator(structuredClone(schema) as Schema, '2020-12')
    validators.set(schema, validator)
    return validator.validate(value)
  } catch (cause) {
    throw new InoriginError(
      'unavailable',
      `${path}: its schema in the catalog cannot be read: ${String(cause)}`,
      { code: 'predictor_unusable', param: path, cause },
    )
  }
}

/** `[1].red` of the pointer `#/1/red`. */
function placeOf(pointer: string): string {
  const steps = pointer.split('/').slice(1)
  const names = steps.map((step) =>
    decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'),
  )
  return names.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join('')
}
