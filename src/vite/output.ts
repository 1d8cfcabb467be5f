/** Puts the library's files into a build, after Vite wrote the app's. */
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { AppFiles } from '../../sw/keep-app.ts'
import { init, isOwnScript } from '../cli/init.ts'
import { FILE_LIST, INORIGIN_FOLDER, type LibraryChoice } from '../cli/library-files.ts'
import { refuse } from '../draft/refuse.ts'
import type { BundledScript } from './service-worker.ts'

/** Name of the service worker script, below the base of the app. */
export const SCRIPT = 'sw.js'

export interface OutputOptions extends LibraryChoice {
  /** Folder of the build. */
  folder: string
  /** Folder with the app's own models, which Vite does not copy; `null` if there is none. */
  models: string | null
  /** Kind of service worker: the library's, one that is bundled for the app, or none. */
  serviceWorker: 'library' | 'bundled' | 'none'
  keepApp: boolean
  /** Bundles a script that keeps these files; `null` for none. */
  bundle: (keep: AppFiles | null) => Promise<BundledScript>
}

/** Writes `inorigin/`, the app's own models and the service worker script. */
export async function writeOutput(options: OutputOptions): Promise<void> {
  const { folder, models, serviceWorker, keepApp, bundle } = options
  const ownModels = models && join(models, INORIGIN_FOLDER)
  if (ownModels && existsSync(ownModels)) {
    cpSync(ownModels, join(folder, INORIGIN_FOLDER), { recursive: true })
  }
  const isLibrary = serviceWorker === 'library'
  init({ ...options, publicDir: folder, sw: isLibrary ? SCRIPT : null })
  if (serviceWorker !== 'bundled') return
  const { code, map } = await bundle(keepApp ? listAppFiles(folder) : null)
  writeFileSync(join(folder, SCRIPT), code)
  if (map !== null) writeFileSync(join(folder, `${SCRIPT}.map`), map)
}

/** Returns the files of the app in a build, which are all but the library's and source maps. */
function listAppFiles(folder: string): AppFiles {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(sep).join('/'))
    .filter((name) => name !== SCRIPT && !name.startsWith(`${INORIGIN_FOLDER}/`))
    .filter((name) => !name.endsWith('.map') && !/(^|\/)\./.test(name))
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()
  const version = createHash('sha256')
  for (const name of names) version.update(name).update(readFileSync(join(folder, name)))
  const files = names.map((name) => name.replace(/(^|\/)index\.html$/, '$1') || './')
  return { version: version.digest('hex'), files }
}

/**
 * Returns a warning if Vite's public folder still has files of `inorigin init`; `null` otherwise.
 * Throws `invalid_request` if a script of the app would be replaced.
 */
export function checkPublicFolder(publicDir: string, writesScript: boolean): string | null {
  const script = join(publicDir, SCRIPT)
  const folder = join(publicDir, INORIGIN_FOLDER)
  if (publicDir === '') return null
  if (writesScript && existsSync(script) && !isOwnScript(script)) {
    throw refuse(
      `${script} exists, and inorigin() would replace it.`,
      "Move it out of the public folder and pass its path as `serviceWorker`, or pass false and call attach() of 'inorigin/sw' in it.",
    )
  }
  if (!existsSync(join(folder, FILE_LIST))) return null
  return (
    `${folder} still has files of \`inorigin init\`, which inorigin() replaces. ` +
    `Delete ${script} and the files that ${join(folder, FILE_LIST)} lists.`
  )
}
