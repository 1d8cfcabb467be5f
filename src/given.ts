/**
 * Validates the arguments of the server handle's methods in the page. Invalid ones would fail in
 * `postMessage` or in another thread, with an error that does not name the argument.
 */
import { InoriginError } from './error.ts'
import type { ChosenFile, Tag } from './types/index.ts'

interface Options {
  signal?: AbortSignal | undefined
  onProgress?: ((progress: never) => void) | undefined
}

const never = new AbortController().signal
const ignore = () => {}

/**
 * Returns the tag if it is a string, without looking it up.
 *
 * @throws InoriginError `invalid_request` for other values.
 */
export function tagOf(tag: Tag): Tag {
  if (typeof tag === 'string') return tag
  throw invalid('tag', `tag must be a string such as @owner/name, not ${kind(tag)}.`)
}

/**
 * Returns the options with their defaults.
 *
 * @throws InoriginError `invalid_request` that names the invalid option.
 */
export function optionsOf<Given extends Options>(
  given: Given | undefined,
): Given & { signal: AbortSignal; onProgress: NonNullable<Given['onProgress']> } {
  const options: unknown = given ?? (given === undefined ? {} : null)
  if (typeof options !== 'object' || options === null) {
    throw invalid('options', `options must be an object or undefined, not ${kind(options)}.`)
  }
  const { signal = never, onProgress = ignore } = options as Options
  if (typeof signal?.addEventListener !== 'function' || !('aborted' in signal)) {
    throw invalid('signal', `signal must be an AbortSignal, not ${kind(signal)}.`)
  }
  if (typeof onProgress !== 'function') {
    throw invalid('onProgress', `onProgress must be a function, not ${kind(onProgress)}.`)
  }
  return {
    ...(options as Given),
    signal,
    onProgress: onProgress as NonNullable<Given['onProgress']>,
  }
}

/**
 * Returns the files with their paths, or the folder. A `File` loses its `webkitRelativePath` when
 * it is sent to another thread.
 *
 * @throws InoriginError `invalid_request` for other values.
 */
export function filesOf(
  files: Iterable<File> | FileSystemDirectoryHandle,
): readonly ChosenFile[] | FileSystemDirectoryHandle {
  const given: unknown = files
  if (isObject(given) && 'kind' in given && given.kind === 'directory')
    return files as FileSystemDirectoryHandle
  const listed =
    isObject(given) && Symbol.iterator in given ? Array.from(files as Iterable<File>) : null
  // `instanceof` fails for files that come from another frame.
  if (listed?.every((file) => kind(file) === 'File')) {
    return listed.map((file) => ({ path: file.webkitRelativePath || file.name, file }))
  }
  const what = 'files must be a list of files or the handle of a folder'
  throw invalid('files', `${what}, not ${kind(given)}. Put a single file into an array.`)
}

function invalid(param: string, message: string): InoriginError {
  return new InoriginError('invalid_request', message, { code: 'invalid_value', param })
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Returns the type of a value for an error message, such as `null`, `string` or `File`. */
function kind(value: unknown): string {
  if (!isObject(value)) return value === null ? 'null' : typeof value
  return Object.prototype.toString.call(value).slice(8, -1)
}
