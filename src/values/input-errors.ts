/** Throws the two errors of a prediction: invalid inputs, or an invalid catalog entry. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'

/** Throws `invalid_request` that begins with the parameter, such as `inputs.image: is required.` */
export function throwInvalidInput(path: string, why: string, cause?: unknown): never {
  throw new InoriginError('invalid_request', `${path}: ${why}`, {
    code: 'invalid_input',
    param: path,
    cause,
  })
}

/** Throws `unavailable`: this entry cannot run anywhere until its author corrects it. */
export function throwPredictorUnusable(
  tag: Tag,
  param: string,
  why: string,
  cause?: unknown,
): never {
  throw new InoriginError(
    'unavailable',
    `The predictor ${tag} cannot run: ${param}: ${why} Its catalog entry must be corrected.`,
    { code: 'predictor_unusable', param, cause },
  )
}
