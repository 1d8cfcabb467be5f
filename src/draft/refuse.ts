/** Errors that say why a file cannot be added as a model, and what to do about it. */
import { InoriginError } from '../error.ts'
import { findFormat } from './formats.ts'

/** Returns an `invalid_request` error for a problem that the user can correct, with the remedy. */
export function refuse(what: string, todo: string, cause?: unknown): InoriginError {
  return new InoriginError('invalid_request', `${what} ${todo}`, { cause })
}

/** Returns the error for a file that is not ONNX. `start` holds the first bytes of the file. */
export function notOnnx(path: string, start: Uint8Array, isCut: boolean): InoriginError {
  if (start.length === 0) return refuse(`${path} is empty.`, 'Export or download it again.')
  const format = findFormat(path, start)
  if (format) return refuse(`${path} ${format.what}`, format.todo(path))
  if (isCut) return refuse(`${path} ends in the middle of a model.`, 'Export or download it again.')
  return refuse(`${path} is not an ONNX model.`, 'Choose the .onnx file, or the folder it is in.')
}
