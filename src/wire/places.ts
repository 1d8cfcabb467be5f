/** What a host says of a request, in the words of the body that it came of. */
import { InoriginError } from '../error.ts'

/** Where in a body the fields of its request are. */
export interface Places {
  /** Beginnings of paths in a request, and what they are in the body; the first to fit counts. */
  rename: ReadonlyArray<readonly [from: RegExp, to: string]>
  /** The fields that asked for reasoning. */
  reasoning: readonly string[]
}

/** The same error, naming the field of the body. */
export function inWordsOf({ rename }: Places, error: InoriginError): InoriginError {
  const { param } = error
  const rule = rename.find(([from]) => from.test(param ?? ''))
  if (param === undefined || !rule) return error
  const place = param.replace(...rule)
  const message = error.message.replaceAll(param, place)
  return new InoriginError(error.kind, message, { ...error.toRecord(), param: place, cause: error })
}

/** The fields of the body that had no effect. */
export function ignoredIn({ reasoning }: Places, fields: readonly string[]): string[] {
  return fields.flatMap((field) => (field === 'reasoningBudget' ? reasoning : field))
}
