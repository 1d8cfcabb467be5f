/**
 * Chromium for the browser tests, the end-to-end tests and `npm run ask`: one that is installed,
 * else Playwright's own, else one that is installed now. It says what it does.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type LaunchOptions } from 'playwright'

const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']

const PLACES: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: [
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
  ],
  linux: ['/snap/bin/chromium', '/opt/google/chrome/chrome'],
  win32: ['PROGRAMFILES', 'PROGRAMFILES(X86)', 'LOCALAPPDATA'].flatMap((name) => {
    const folder = process.env[name]
    return folder ? [join(folder, 'Google', 'Chrome', 'Application', 'chrome.exe')] : []
  }),
}

/** Flags of every launch: no traffic of the browser's own, and WebGPU, without a GPU unless told. */
export function chromiumArgs(gpu: 'software' | 'hardware' = 'software'): string[] {
  const adapter =
    gpu === 'software'
      ? ['--use-webgpu-adapter=swiftshader']
      : // Without these a headless Chromium on Linux looks for no GPU.
        ['--enable-features=Vulkan,DefaultANGLEVulkan,VulkanFromANGLE', '--ignore-gpu-blocklist']
  const args = ['--enable-unsafe-webgpu', ...adapter, '--disable-background-networking']
  // Chromium refuses its sandbox to root, which is who containers run as.
  if (process.getuid?.() === 0) args.push('--no-sandbox')
  return args
}

/** Playwright's launch options for a headless Chromium that is found or installed. */
export function chromiumLaunch(gpu: 'software' | 'hardware' = 'software'): LaunchOptions {
  return { executablePath: ensureChromium(), args: chromiumArgs(gpu), headless: true }
}

/** Path of a Chromium that is installed, or undefined. Throws when a path that was asked for is not there. */
export function findChromium(): string | undefined {
  for (const name of ['CHROMIUM_PATH', 'CHROME_PATH']) {
    const path = process.env[name]
    if (!path) continue
    if (isExecutable(path)) return path
    throw new Error(`${name} is ${path}, which is not a program that can be run. Correct or unset it.`)
  }
  const installed = [...onPath(), ...(PLACES[process.platform] ?? [])].find(starts)
  if (installed) return installed
  const own = chromium.executablePath()
  return own && existsSync(own) ? own : undefined
}

/** Path of Chromium, installing one if there is none. Throws with what to do when that fails. */
export function ensureChromium(): string {
  const found = findChromium()
  if (found) return found
  // Debian and its kin: the libraries that Chromium needs come from there too.
  const hasApt = process.getuid?.() === 0 && onPath(['apt-get']).some(isExecutable)
  say('No Chromium is installed. Fetching the one that Playwright ships ...')
  const install = ['install', ...(hasApt ? ['--with-deps'] : []), 'chromium']
  run(process.execPath, [join('node_modules', 'playwright', 'cli.js'), ...install])
  const fetched = findChromium()
  if (fetched) return fetched
  if (hasApt) {
    say('That failed. Installing the package "chromium" with apt-get ...')
    run('apt-get', ['update'])
    run('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'])
    const packaged = findChromium()
    if (packaged) return packaged
  }
  throw new Error(
    'No Chromium was found and none could be installed. Install Chromium or Chrome yourself, ' +
      'or set CHROMIUM_PATH to the program.',
  )
}

function onPath(commands: readonly string[] = COMMANDS): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return commands.flatMap((command) => folders.map((folder) => join(folder, command)))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Ubuntu installs a `chromium-browser` that only says to install a snap, so being there is not enough. */
function starts(path: string): boolean {
  if (!isExecutable(path)) return false
  // On Windows `--version` opens a window instead.
  return process.platform === 'win32' || spawnSync(path, ['--version']).status === 0
}

function run(command: string, args: readonly string[]): void {
  const { error } = spawnSync(command, args, { stdio: 'inherit' })
  if (error) say(`${command} could not be run: ${error.message}`)
}

function say(line: string): void {
  process.stderr.write(`[chromium] ${line}\n`)
}
