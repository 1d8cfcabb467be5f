/** Stores the options of `inorigin init` in an app's package.json. */
import { existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { MLC_LIST } from '../catalog/mlc/list.ts'
import type { Catalog, CatalogDocument } from '../catalog/schema.ts'
import { validateCatalog } from '../catalog/validate.ts'
import { refuse } from '../draft/refuse.ts'
import { InoriginError } from '../error.ts'
import { createUsageError } from './command.ts'
import { writeBelow } from './write-file.ts'

interface ProjectOptions {
  publicDir: string
  /** File name of the script; `false` if the app has its own. Default: `sw.js`. */
  sw?: string | false
  guide?: boolean
  mlc?: boolean
  webgpu?: boolean
}

export const PACKAGE_FILE = 'package.json'

/** Returns the options stored in an app's folder; `undefined` if there are none. */
export function readProjectOptions(app: string): ProjectOptions | undefined {
  const path = join(app, PACKAGE_FILE)
  if (!existsSync(path)) return undefined
  const { inorigin } = parsePackage(path, readFileSync(path, 'utf8'))
  if (inorigin === undefined) return undefined
  const { publicDir, sw, ...flags } = inorigin as Partial<ProjectOptions>
  if (typeof publicDir !== 'string')
    throw refuse(`"inorigin" in ${path} has no "publicDir".`, 'Run `inorigin init <folder>`.')
  const found: ProjectOptions = { publicDir }
  if (typeof sw === 'string' || sw === false) found.sw = sw
  for (const name of ['guide', 'mlc', 'webgpu'] as const)
    if (typeof flags[name] === 'boolean') found[name] = flags[name]
  return found
}

/**
 * Returns the public folder stored in an app's folder; `undefined` if there is none. Throws
 * `invalid_request` if it is outside, because a cloned app must not decide where files are written.
 */
export function getRememberedFolder(app: string): string | undefined {
  const publicDir = readProjectOptions(app)?.publicDir
  if (publicDir === undefined) return undefined
  const path = relative(app, resolve(app, publicDir))
  if (!isAbsolute(path) && !/^\.\.([\\/]|$)/.test(path)) return publicDir
  throw refuse(
    `"publicDir" in ${join(app, PACKAGE_FILE)} is outside of this folder: ${publicDir}`,
    'Name the folder on the command line.',
  )
}

/** Returns the folder named on the command line, else the stored one. Throws a usage error. */
export function getPublicFolder(given: string | undefined): string {
  const folder = given === undefined ? getRememberedFolder(process.cwd()) : toRelativePath(given)
  if (folder !== undefined) return folder
  throw createUsageError(
    'Name your public folder, such as --public public, or run `inorigin init public` first.',
  )
}

/** Returns a path relative to the current folder, which is valid on other machines too. */
export const toRelativePath = (path: string): string =>
  relative(process.cwd(), resolve(path)).split(sep).join('/') || '.'

/** Stores the options and keeps the indentation. Returns `false` if there is no package.json. */
export function writeProjectOptions(
  app: string,
  { publicDir, sw, guide, mlc, webgpu }: Required<ProjectOptions>,
): boolean {
  const path = join(app, PACKAGE_FILE)
  if (!existsSync(path)) return false
  const text = readFileSync(path, 'utf8')
  const inorigin: ProjectOptions = {
    publicDir,
    ...(sw !== 'sw.js' && { sw }),
    ...(!guide && { guide }),
    ...(mlc && { mlc }),
    ...(!webgpu && { webgpu }),
  }
  const indent = /^[ \t]+/m.exec(text)?.[0] ?? 2
  const end = text.endsWith('\n') ? '\n' : ''
  const next = JSON.stringify({ ...parsePackage(path, text), inorigin }, null, indent) + end
  if (next !== text) writeBelow(app, PACKAGE_FILE, { text: next })
  return true
}

function parsePackage(path: string, text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (cause) {
    throw refuse(`${path} is not JSON.`, 'Correct it first.', cause)
  }
}

/** Reads a catalog without checking it. Throws `invalid_request` for a missing file or wrong JSON. */
export function readDocument(path: string): CatalogDocument {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as CatalogDocument
  } catch (cause) {
    const what = existsSync(path)
      ? `The catalog ${path} cannot be read: ${String(cause)}`
      : `There is no file ${path}. Check the path of the catalog.`
    throw new InoriginError('invalid_request', what, { code: 'invalid_catalog', cause })
  }
}

/**
 * Returns the validated catalog. Throws `invalid_request` that names the problems. `embedded`
 * allows tags of `@inorigin`.
 */
export const validateDocument = (document: unknown, path: string, embedded: boolean): Catalog =>
  // Relative URLs are not followed here, so any base will do.
  validateCatalog(document, { source: path, base: 'http://localhost/', embedded, mlc: MLC_LIST })
