/** WebKitGTK for `npm run test:browsers`: Debian's packages, which are installed if they are missing. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { hasApt, installPackage, isExecutable, onPath, say } from './programs.ts'

/** The package of the engine holds its small browser, which is not in `PATH`. */
const PACKAGE = 'libwebkit2gtk-4.1-0'
const LIBRARIES = '/usr/lib'

/** Returns the path of WebKitGTK's MiniBrowser, or undefined. `WEBKIT_PATH` names another one. */
export function findWebKit(): string | undefined {
  const path = process.env['WEBKIT_PATH']
  const folders = process.platform === 'linux' ? readdirSync(LIBRARIES) : []
  const places = folders.map((name) => join(LIBRARIES, name, 'webkit2gtk-4.1', 'MiniBrowser'))
  return [...(path ? [path] : []), ...places].find(isExecutable)
}

/** Returns the path of Xvfb, the display that WebKitGTK needs, or undefined. */
export const findXvfb = (): string | undefined => onPath(['Xvfb']).find(isExecutable)

/** Returns the path of MiniBrowser, and installs it and Xvfb first. Throws if that fails. */
export function ensureWebKit(): string {
  const found = findWebKit() ?? install(PACKAGE, findWebKit)
  ensureXvfb()
  return found
}

/** Returns the path of Xvfb, and installs it first. Throws if that fails. */
export const ensureXvfb = (): string => findXvfb() ?? install('xvfb', findXvfb)

function install(name: string, find: () => string | undefined): string {
  if (hasApt()) {
    say(`Installing the package "${name}" with apt-get ...`)
    installPackage(name)
  }
  const installed = find()
  if (installed) return installed
  throw new Error(
    `The package "${name}" was not found and could not be installed. Install it yourself; WEBKIT_PATH ` +
      `names the MiniBrowser of another WebKitGTK.`,
  )
}
