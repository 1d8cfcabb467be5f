/**
 * Checks lists and dicts against their JSON Schema. The library interprets schemas, because the
 * content security policy of an app may forbid eval.
 */
import { type Schema, Validator } from '@cfworker/json-schema'
import { InoriginError } from '../error.ts'
import { throwInvalidInput } from '../values/input-errors.ts'

const validators = new WeakMap<object, Validator>()

/** Throws `invalid_request` that names the part of `value` which does not match the schema. */
export function assertMatchesSchema(
  schema: Record<string, unknown>,
  value: unknown,
  path: string,
): void {
  const { valid, errors } = validate(schema, value, path)
  if (valid) return
  // The last error is the innermost. The others only say that a part is invalid.
  const innermost = errors.at(-1)
  const at = `${path}${pointerToPath(innermost?.instanceLocation ?? '#')}`
  throwInvalidInput(at, `does not match its schema. ${innermost?.error ?? ''}`.trim())
}

function validate(
  schema: Record<string, unknown>,
  value: unknown,
  path: string,
): ReturnType<Validator['validate']> {
  try {
    let validator = validators.get(schema)
    // The library modifies its argument, so it gets a copy.
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

/** Converts a pointer such as `#/1/red` to a path such as `[1].red`. */
function pointerToPath(pointer: string): string {
  const steps = pointer.split('/').slice(1)
  const names = steps.map((step) =>
    decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'),
  )
  return names.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join('')
}
