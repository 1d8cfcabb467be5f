/** Translates field names of a request in errors of the host to those of the body. */
import { InoriginError } from '../error.ts'

/** Mapping from fields of a request to fields of its body. */
export interface FieldNames {
  /** Prefixes of paths in the request, and their replacements. The first match wins. */
  rename: ReadonlyArray<readonly [from: RegExp, to: string]>
  /** Fields of the body that set the reasoning budget. */
  reasoning: readonly string[]
}

/** Returns the error with the field name of the body. */
export function withBodyFieldNames({ rename }: FieldNames, error: InoriginError): InoriginError {
  const { param } = error
  const rule = rename.find(([from]) => from.test(param ?? ''))
  if (param === undefined || !rule) return error
  const bodyParam = param.replace(...rule)
  const message = error.message.replaceAll(param, bodyParam)
  return new InoriginError(error.kind, message, {
    ...error.toRecord(),
    param: bodyParam,
    cause: error,
  })
}

/** Returns the fields of the body that had no effect. */
export function toBodyFields({ reasoning }: FieldNames, fields: readonly string[]): string[] {
  return fields.flatMap((field) => (field === 'reasoningBudget' ? reasoning : field))
}
