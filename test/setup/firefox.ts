/** Firefox for `npm run test:browsers`: one that is installed, else Debian's package. */
import { hasApt, installPackage, onPath, say, starts } from './programs.ts'

const COMMANDS = ['firefox-esr', 'firefox']

/** Returns the path of a Firefox that starts, or undefined. */
export function findFirefox(): string | undefined {
  const path = process.env['FIREFOX_PATH']
  return [...(path ? [path] : []), ...onPath(COMMANDS)].find(starts)
}

/** Returns the path of Firefox, and installs it first if there is none. Throws if that fails. */
export function ensureFirefox(): string {
  const found = findFirefox()
  if (found) return found
  if (hasApt()) {
    say('No Firefox is installed. Installing the package "firefox-esr" with apt-get ...')
    installPackage('firefox-esr')
  }
  const installed = findFirefox()
  if (installed) return installed
  throw new Error(
    'No Firefox was found and none could be installed. Install Firefox yourself, or set FIREFOX_PATH ' +
      'to the program.',
  )
}
