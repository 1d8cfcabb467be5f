/** Copies the files that `serve()` needs into an app's public folder. */
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { refuse } from '../draft/refuse.ts'
import type { ListedFile } from '../types/index.ts'
import * as library from './library-files.ts'
import { type Content, assertNoLinks, findStats, writeBelow } from './write-file.ts'

interface InitOptions extends library.LibraryChoice {
  /** Folder that the app's web server serves. It is created if missing. */
  publicDir: string
  /** File name of the service worker script in that folder; `null` to write none. */
  sw: string | null
  /** File name of the script of an earlier run, which is deleted if it has another name now. */
  formerSw?: string | null
}

export type InitResult = ReturnType<typeof init>

/** Start of the first line of the package's service worker script. */
const SCRIPT_MARK = '/*! inorigin '

/**
 * Writes the service worker script and the folder `inorigin/` beside it.
 *
 * @throws InoriginError `invalid_request` if another script or a link is in the way, or if the
 * folder cannot be written; `unavailable` if the package or onnxruntime-web is incomplete.
 */
export function init(options: InitOptions) {
  const { publicDir, dist, sw, formerSw = null } = options
  const parent = dirname(publicDir)
  // A folder below one that does not exist is more likely a mistake in the path.
  if (!existsSync(parent))
    throw refuse(`There is no folder ${parent}.`, 'Create it first, or correct the path.')
  const script = sw === null ? null : join(publicDir, sw)
  if (sw !== null) assertOwnScript(publicDir, sw)
  const folder = join(publicDir, library.INORIGIN_FOLDER)
  const sources = library.collectLibraryFiles(options)
  const assertNone = (names: readonly string[]) =>
    names.forEach((name) => assertNoLinks(publicDir, `${library.INORIGIN_FOLDER}/${name}`))
  assertNone([library.FILE_LIST, ...sources.keys()])
  const before = readFileList(folder)
  assertNone(before)

  const write = (name: string, content: Content) =>
    writeBelow(publicDir, `${library.INORIGIN_FOLDER}/${name}`, content)
  const written = [...sources].map(([name, source]) => write(name, source))
  written.push(write(library.FILE_LIST, { text: library.serializeFileList(sources) }))
  const removed = before.filter((name) => !sources.has(name) && removeFile(folder, name))
  // The script comes last, so that a page that finds it finds the other files too.
  if (sw !== null) written.push(writeBelow(publicDir, sw, { from: join(dist, 'sw.js') }))
  if (formerSw !== null && formerSw !== sw && isOwnScript(join(publicDir, formerSw))) {
    rmSync(join(publicDir, formerSw))
    removed.push(formerSw)
  }

  return {
    script,
    folder,
    /** Number of files written. `bytes` is their total length. */
    files: written.length,
    bytes: written.reduce((sum, length) => sum + length, 0),
    /** Deleted files of an earlier version, relative to `folder`; a script relative to its parent. */
    removed,
  }
}

function assertOwnScript(publicDir: string, sw: string): void {
  assertNoLinks(publicDir, sw)
  const script = join(publicDir, sw)
  if (!existsSync(script) || isOwnScript(script)) return
  throw refuse(
    `${script} exists and was not written by inorigin, so it was not changed.`,
    "If your app owns it, call attach() of 'inorigin/sw' in it and run this with --own-sw. " +
      `Otherwise choose another name, \`--sw inorigin-${basename(script)}\`.`,
  )
}

/** Returns `true` for a file that an earlier run wrote as the service worker script. */
export const isOwnScript = (path: string): boolean =>
  (findStats(path)?.isFile() ?? false) && library.readText(path).startsWith(SCRIPT_MARK)

/** Deletes a file of an earlier version, and its folders if they become empty. */
function removeFile(folder: string, name: string): boolean {
  const path = join(folder, name)
  if (!findStats(path)?.isFile()) return false
  rmSync(path)
  for (let at = dirname(path); at !== folder && readdirSync(at).length === 0; at = dirname(at))
    rmdirSync(at)
  return true
}

function readFileList(folder: string): string[] {
  const path = join(folder, library.FILE_LIST)
  if (!existsSync(path)) return []
  try {
    const { files } = JSON.parse(library.readText(path)) as { files: Partial<ListedFile>[] }
    return files
      .map(({ name }) => name)
      .filter((name) => typeof name === 'string')
      .filter((name) => !relative(folder, join(folder, name)).startsWith('..'))
  } catch (cause) {
    const what = `${path} is not a file list of \`inorigin init\`.`
    throw refuse(what, 'Delete it, then run this again.', cause)
  }
}
