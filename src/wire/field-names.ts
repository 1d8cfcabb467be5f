/** Translates field names of a request in errors of the host to those of the body. */
import { InoriginError } from '../error.ts'

/** Mapping from fields of a request to fields of its body. */
export interface FieldNames {
  /** Prefixes of paths in the request, and their replacements. The first match wins. */
  rename: ReadonlyArray<
    readonly [from: RegExp, to: string | ((found: string, ...groups: string[]) => string)]
  >
  /** Fields of the body that set the reasoning budget. */
  reasoning: readonly string[]
}

/** Returns the error with the field name of the body, also in `details.path`. */
export function withBodyFieldNames({ rename }: FieldNames, error: InoriginError): InoriginError {
  const { param, details } = error
  const [from, to] = rename.find(([pattern]) => pattern.test(param ?? '')) ?? []
  if (param === undefined || !from) return error
  const bodyParam = param.replace(from, to as string)
  const message = error.message.replaceAll(param, bodyParam)
  return new InoriginError(error.kind, message, {
    ...error.toRecord(),
    ...(details?.['path'] === param && { details: { ...details, path: bodyParam } }),
    param: bodyParam,
    cause: error,
  })
}

/** Returns the fields of the body that had no effect. */
export function toBodyFields({ reasoning }: FieldNames, fields: readonly string[]): string[] {
  return fields.flatMap((field) => (field === 'reasoningBudget' ? reasoning : field))
}
