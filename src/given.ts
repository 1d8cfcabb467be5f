/**
 * What a page hands to its server's calls, looked at before it crosses to another thread: there, nobody
 * could tell what was wrong with it.
 */
import { InoriginError } from './error.ts'
import type { ChosenFile, Tag } from './types/index.ts'

interface Options {
  signal?: AbortSignal | undefined
  onProgress?: ((progress: never) => void) | undefined
}

const never = new AbortController().signal
const ignore = () => {}

/** Throws `invalid_request` for what is no text; whether there is such a tag is seen later. */
export function tagOf(tag: Tag): Tag {
  if (typeof tag === 'string') return tag
  throw invalid('tag', `tag must be a text such as @owner/name, not ${kind(tag)}.`)
}

/** With their defaults. Throws `invalid_request` that names the one that cannot work. */
export function optionsOf<Given extends Options>(
  given: Given | undefined,
): Given & { signal: AbortSignal; onProgress: NonNullable<Given['onProgress']> } {
  const options: unknown = given ?? (given === undefined ? {} : null)
  if (typeof options !== 'object' || options === null) {
    throw invalid('options', `options must be an object, not ${kind(options)}. Leave them out.`)
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

/** A `File` forgets the folder it was chosen in when it crosses. Throws `invalid_request` for others. */
export function filesOf(
  files: Iterable<File> | FileSystemDirectoryHandle,
): readonly ChosenFile[] | FileSystemDirectoryHandle {
  const given: unknown = files
  if (isObject(given) && 'kind' in given && given.kind === 'directory')
    return files as FileSystemDirectoryHandle
  const listed =
    isObject(given) && Symbol.iterator in given ? Array.from(files as Iterable<File>) : null
  // Those of another frame are of another class.
  if (listed?.every((file) => kind(file) === 'File')) {
    return listed.map((file) => ({ path: file.webkitRelativePath || file.name, file }))
  }
  const what = 'files must be the files of an input, or the handle of a folder'
  throw invalid('files', `${what}, not ${kind(given)}. A single file goes into an array.`)
}

function invalid(param: string, message: string): InoriginError {
  return new InoriginError('invalid_request', message, { code: 'invalid_value', param })
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** As a message calls it. */
function kind(value: unknown): string {
  if (!isObject(value)) return value === null ? 'null' : typeof value
  return Object.prototype.toString.call(value).slice(8, -1)
}
