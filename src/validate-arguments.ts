/**
 * Validates the arguments of the server handle's methods in the page. Invalid ones would fail in
 * `postMessage` or in another thread, with an error that does not name the argument.
 */
import { InoriginError } from './error.ts'
import type { ChosenFile, Tag } from './types/index.ts'
import { isObjectOrArray } from './values/objects.ts'
import { findSimilar } from './values/text.ts'

interface Options {
  signal?: AbortSignal | undefined
  onProgress?: ((progress: never) => void) | undefined
}

/** Default of the option `signal`. */
export const neverAborted = new AbortController().signal
const noop = () => {}

/**
 * Returns the tag if it is a string, without looking it up. `name` is that of the argument.
 *
 * @throws InoriginError `invalid_request` for other values.
 */
export function parseTag(tag: Tag, name = 'tag'): Tag {
  if (typeof tag === 'string') return tag
  throw invalid(name, `${name} must be a string such as @owner/name, not ${typeName(tag)}.`)
}

/** Names of all options of a function. The type makes sure that none is missing. */
export type OptionNames<Input extends object> = Readonly<Record<keyof Input, true>>

/**
 * Checks that the options are an object without unknown ones.
 *
 * @throws InoriginError `invalid_request` that names the unknown option and a similar known one.
 */
export function assertKnownOptions<Input extends object>(
  input: Input,
  names: OptionNames<Input>,
): void {
  const options: unknown = input
  if (typeof options !== 'object' || options === null)
    throw invalid('options', `options must be an object or undefined, not ${typeName(options)}.`)
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name))
  if (unknown === undefined) return
  const known = Object.keys(names)
  const similar = findSimilar(unknown, known)
  const todo = similar ? `Did you mean ${similar}?` : `Known options: ${known.join(', ')}.`
  throw invalid(unknown, `Unknown option "${unknown}". ${todo}`)
}

/**
 * Returns the options with their defaults.
 *
 * @throws InoriginError `invalid_request` that names the invalid or unknown option.
 */
export function parseOptions<Input extends Options>(
  input: Input | undefined,
  names: OptionNames<Input>,
): Input & { signal: AbortSignal; onProgress: NonNullable<Input['onProgress']> } {
  const options = input === undefined ? ({} as Input) : input
  assertKnownOptions(options, names)
  const { signal = neverAborted, onProgress = noop } = options as Options
  if (typeof signal?.addEventListener !== 'function' || !('aborted' in signal))
    throw invalid('signal', `signal must be an AbortSignal, not ${typeName(signal)}.`)
  if (typeof onProgress !== 'function')
    throw invalid('onProgress', `onProgress must be a function, not ${typeName(onProgress)}.`)
  return { ...options, signal, onProgress: onProgress as NonNullable<Input['onProgress']> }
}

/**
 * Returns the files with their paths, or the folder. A `File` loses its `webkitRelativePath` when
 * it is sent to another thread.
 *
 * @throws InoriginError `invalid_request` for other values.
 */
export function parseFiles(
  files: Iterable<File> | FileSystemDirectoryHandle,
): readonly ChosenFile[] | FileSystemDirectoryHandle {
  const input: unknown = files
  if (isObjectOrArray(input) && input['kind'] === 'directory')
    return files as FileSystemDirectoryHandle
  const listed =
    isObjectOrArray(input) && Symbol.iterator in input ? Array.from(files as Iterable<File>) : null
  if (listed?.every(isFile))
    return listed.map((file) => ({ path: file.webkitRelativePath || file.name, file }))
  const what = 'files must be a list of files or the handle of a folder'
  throw invalid('files', `${what}, not ${typeName(input)}. Put a single file into an array.`)
}

/** Returns `true` for a file. `instanceof` fails for files that come from another frame. */
export const isFile = (value: unknown): value is File => typeName(value) === 'File'

/** Returns the tag of a model of the user's own for its files, by the name of their file or folder. */
export function toOwnTag(chosen: ReturnType<typeof parseFiles>): Tag {
  const paths = 'kind' in chosen ? [`${chosen.name}/`] : chosen.map(({ path }) => path)
  const path = paths.find((one) => /\.(gguf|onnx)$/i.test(one)) ?? paths[0] ?? ''
  const [name = ''] = path.split('/')
  const stem = name.replace(/(-\d{5}-of-\d{5})?\.(gguf|onnx)$/i, '').toLowerCase()
  const plain = stem.replaceAll(/[^a-z0-9._-]+/g, '-').replaceAll(/^[._-]+|[._-]+$/g, '')
  return `@me/${plain || 'model'}`
}

/**
 * Returns the value of an option of `serve` or `attach` that is `true` or `false`.
 *
 * @throws InoriginError `invalid_request` for other values than `true`, `false` and `undefined`.
 */
export function parseFlag(
  option: 'isolate' | 'offline',
  value: boolean | undefined,
  byDefault: boolean,
): boolean {
  if (value === undefined) return byDefault
  if (typeof value === 'boolean') return value
  throw invalid(option, `${option} must be true or false, not ${typeName(value)}.`)
}

const invalid = (param: string, message: string) =>
  new InoriginError('invalid_request', message, { code: 'invalid_value', param })

/** Returns the type of a value for an error message, such as `null`, `string` or `File`. */
function typeName(value: unknown): string {
  if (!isObjectOrArray(value)) return value === null ? 'null' : typeof value
  return Object.prototype.toString.call(value).slice(8, -1)
}
