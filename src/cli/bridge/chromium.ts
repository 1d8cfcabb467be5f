/** Finds and starts the headless Chromium that lends itself to the bridge. */
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { InoriginError } from '../../error.ts'

/** The headless shell comes last, because it does not use a GPU on every system. */
const NAMES = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
  'microsoft-edge',
  'chromium-headless-shell',
]

const PLACES: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: [
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
  ],
  win32: ['PROGRAMFILES', 'PROGRAMFILES(X86)', 'LOCALAPPDATA'].flatMap((name) => {
    const folder = process.env[name]
    return folder ? [join(folder, 'Google', 'Chrome', 'Application', 'chrome.exe')] : []
  }),
}

/** Without these, a headless Chromium on Linux looks for no GPU. */
const LINUX_GPU_ARGS = ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--use-angle=vulkan']

/**
 * Returns the path of an installed Chromium. `CHROMIUM_PATH` names another one.
 *
 * @throws InoriginError `unavailable` if there is none.
 */
export function findChromium(): string {
  const given = process.env['CHROMIUM_PATH']
  if (given) {
    if (isExecutable(given)) return given
    const what = `CHROMIUM_PATH is ${given}, which is not a program. Correct or unset it.`
    throw new InoriginError('invalid_request', what)
  }
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  const onPath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))
  const found = [...(PLACES[process.platform] ?? []), ...onPath].find(isExecutable)
  if (found) return found
  const what = 'No Chromium or Chrome was found. Install one, or set CHROMIUM_PATH to its program.'
  throw new InoriginError('unavailable', what)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Returns the folder of the profile that keeps the models. Each port has its own, as an origin does. */
export const getProfileFolder = (port: number): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'inorigin', `bridge-${port}`)

/** Starts a headless Chromium with the page. Its sandbox is off if root runs it, which it refuses. */
export function startChromium(program: string, profile: string, url: string) {
  const start = writeStartPage(profile, url)
  const args = [
    '--headless',
    '--no-first-run',
    '--no-default-browser-check',
    '--disable-background-networking',
    '--disable-background-timer-throttling',
    `--user-data-dir=${profile}`,
    ...(process.platform === 'linux' ? LINUX_GPU_ARGS : []),
    ...(isRoot() ? ['--no-sandbox'] : []),
    pathToFileURL(start).href,
  ]
  const browser = spawn(program, args, { stdio: 'ignore', detached: process.platform !== 'win32' })
  const ended = new Promise<number | null>((resolve) => {
    browser.once('error', () => resolve(null))
    browser.once('exit', resolve)
  }).finally(() => rmSync(start, { force: true }))
  return {
    /** Resolves with the exit code when the browser has ended. */
    ended,
    /** Ends the browser with the processes that a script of the same name started. */
    async close() {
      const { pid, exitCode, signalCode } = browser
      try {
        if (pid !== undefined && exitCode === null && signalCode === null)
          process.kill(process.platform === 'win32' ? pid : -pid)
      } catch {
        // It has ended meanwhile.
      }
      await ended
    },
  }
}

export const isRoot = (): boolean => process.getuid?.() === 0

/**
 * Writes a page that leads to the URL, for this user only. The URL has the token, and every user of
 * the machine can read the arguments of a process.
 */
export function writeStartPage(folder: string, url: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'bridge.html')
  rmSync(path, { force: true })
  const script = `location.replace(${JSON.stringify(url)})`
  writeFileSync(path, `<!doctype html><script>${script}</script>\n`, { mode: 0o600 })
  return path
}

/** Opens the page in the user's own browser. */
export function openInBrowser(page: string): void {
  const opener = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open'
  const child = spawn(opener, [page], { stdio: 'ignore', detached: true })
  // The command also prints the URL, which works without this program.
  child.once('error', () => undefined)
  child.unref()
}
