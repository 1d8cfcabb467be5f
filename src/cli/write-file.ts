/** Writes files atomically, and never through a link. */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, dirname, join, normalize, sep } from 'node:path'
import { refuse } from '../draft/refuse.ts'
import { InoriginError } from '../error.ts'

/** Content of a file to write: a copy of another file or of a range of its bytes, or a text. */
export type Content =
  /** The range ends before `end`, by default at the end of the file. */
  { from: string; start?: number; end?: number } | { text: string }

export function readContent(content: Content): Uint8Array {
  if ('text' in content) return Buffer.from(content.text)
  return fs.readFileSync(content.from).subarray(content.start, content.end)
}

/**
 * Writes a file below a folder, which may be a link itself, and returns its length in bytes.
 * Creates missing folders. Throws `invalid_request` if a step below the folder is a link, or if the
 * file cannot be written. Then the file is unchanged.
 */
export function writeBelow(folder: string, path: string, content: Content): number {
  const to = join(folder, path)
  assertNoLinks(folder, path)
  const next = toTemporaryPath(to)
  try {
    fs.mkdirSync(dirname(to), { recursive: true })
    // Both ways of writing fail on an existing link instead of following it.
    const isWhole = 'from' in content && content.end === undefined
    if (isWhole) fs.copyFileSync(content.from, next, fs.constants.COPYFILE_EXCL)
    else fs.writeFileSync(next, readContent(content), { flag: 'wx' })
    const before = findStats(to)
    if (before && 'text' in content) fs.chmodSync(next, before.mode & 0o777)
    assertNoLinks(folder, path)
    const { size } = fs.lstatSync(next)
    fs.renameSync(next, to)
    return size
  } catch (cause) {
    if (findStats(next)) fs.rmSync(next)
    if (cause instanceof InoriginError) throw cause
    const { message } = InoriginError.from(cause)
    const todo = 'Check the folder, its permissions and the space on its disk.'
    throw refuse(`${to} cannot be written: ${message}.`, todo, cause)
  }
}

/** Throws `invalid_request` if a step of the path below the folder is a link. */
export function assertNoLinks(folder: string, path: string): void {
  const link = describeFirstLink(folder, path)
  if (!link) return
  const what = `${link}, and inorigin does not write through links.`
  throw refuse(what, 'Put a file or folder of its own in its place.')
}

/** Describes the first link in a path below a folder; `undefined` if there is none. */
export function describeFirstLink(folder: string, path: string): string | undefined {
  const parts = normalize(path).split(sep)
  const link = parts
    .map((_, index) => join(folder, ...parts.slice(0, index + 1)))
    .find((step) => findStats(step)?.isSymbolicLink())
  return link && `${link} is a link to ${fs.readlinkSync(link)}`
}

/** Returns an unused path beside a file. It is hidden, so that web servers do not serve it. */
export const toTemporaryPath = (path: string): string =>
  join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`)

/** Returns the status of a path without following links; `undefined` if there is nothing. */
export function findStats(path: string): fs.Stats | undefined {
  try {
    return fs.lstatSync(path)
  } catch {
    return undefined
  }
}
