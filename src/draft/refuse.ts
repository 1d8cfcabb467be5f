/** Errors that say why a file cannot be added as a model, and what to do about it. */
import { InoriginError } from '../error.ts'

/** Returns an `invalid_request` error for a problem that the user can correct, with the remedy. */
export function refuse(what: string, todo: string, cause?: unknown): InoriginError {
  return new InoriginError('invalid_request', `${what} ${todo}`, { cause })
}

const CONVERT = 'Export the model to ONNX first.'

/** Other model formats, recognized by a text at a fixed offset of the file. */
const FORMATS: readonly { at: number; text: string; what: string; todo: string }[] = [
  {
    at: 0,
    text: 'version https://git-lfs',
    what: 'is a Git LFS pointer, not the file itself.',
    todo: 'Run `git lfs pull` in its repository, or download the file.',
  },
  { at: 0, text: '<', what: 'is a web page.', todo: 'Download the file again.' },
  {
    at: 0,
    text: 'PK\x03\x04',
    what: 'is a zip archive, as PyTorch and Keras write them.',
    todo: CONVERT,
  },
  { at: 0, text: '\x80', what: 'is a pickled Python object.', todo: CONVERT },
  { at: 0, text: 'GGUF', what: 'is a GGUF file.', todo: CONVERT },
  { at: 4, text: 'TFL3', what: 'is a TensorFlow Lite file.', todo: CONVERT },
  {
    at: 4,
    text: 'ORTM',
    what: 'is in the .ort format.',
    todo: 'Choose the .onnx file it was made from.',
  },
  { at: 0, text: '\x89HDF', what: 'is an HDF5 file, as Keras writes them.', todo: CONVERT },
  { at: 8, text: '{"', what: 'is a safetensors file.', todo: CONVERT },
]

/** Returns the error for a file that is not ONNX. `start` holds the first bytes of the file. */
export function notOnnx(path: string, start: Uint8Array, isCut: boolean): InoriginError {
  const text = new TextDecoder('latin1').decode(start)
  const format = FORMATS.find((one) => text.startsWith(one.text, one.at))
  if (start.length === 0) return refuse(`${path} is empty.`, 'Export or download it again.')
  if (format) return refuse(`${path} ${format.what}`, format.todo)
  if (isCut) return refuse(`${path} ends in the middle of a model.`, 'Export or download it again.')
  return refuse(`${path} is not an ONNX model.`, 'Choose the .onnx file, or the folder it is in.')
}
