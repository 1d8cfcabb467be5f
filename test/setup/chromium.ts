/**
 * Chromium for the browser tests, the end-to-end tests and `npm run ask`: one that is installed,
 * else Playwright's own, else one that is installed now. It says what it does.
 *
 * The headless shell comes first: it is Chromium without the windows around its pages, which nobody sees
 * here. Four files of end-to-end tests took 105 s of CPU with it and 147 s with Chromium 156, on two cores.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type LaunchOptions } from 'playwright'
import { hasApt, installPackage, isExecutable, onPath, run, say, starts } from './programs.ts'

/** Debian's package, and the command in it. */
const SHELL = 'chromium-headless-shell'

const WINDOWED = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']

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

/** The WebGPU adapter of a launch: one made of software, the machine's GPU, or no WebGPU at all. */
export type Gpu = 'software' | 'hardware' | 'none'

const GPU_ARGS: Readonly<Record<Gpu, readonly string[]>> = {
  software: ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
  // Without these a headless Chromium on Linux looks for no GPU.
  hardware: [
    '--enable-unsafe-webgpu',
    '--enable-features=Vulkan,DefaultANGLEVulkan,VulkanFromANGLE',
    '--ignore-gpu-blocklist',
  ],
  none: ['--disable-features=WebGPU', '--disable-gpu'],
}

/**
 * Flags of the one browser that tests share. Its pages live for seconds, in which optimized wasm does not
 * pay for itself, so V8 waits longer for it: 92 s of CPU in place of 105 s for four files of end-to-end
 * tests, on two cores.
 */
export const SHORT_LIVED_ARGS: readonly string[] = ['--js-flags=--wasm-tiering-budget=50000000']

/** Flags of every launch: that adapter, and no network traffic of the browser's own. */
export function chromiumArgs(gpu: Gpu = 'software'): string[] {
  const args = [...GPU_ARGS[gpu], '--disable-background-networking']
  // Chromium refuses its sandbox to root, which is who containers run as.
  if (process.getuid?.() === 0) args.push('--no-sandbox')
  return args
}

/** Playwright's launch options for a headless Chromium that is found or installed. */
export function chromiumLaunch(gpu: Gpu = 'software'): LaunchOptions {
  return { executablePath: ensureChromium(gpu), args: chromiumArgs(gpu), headless: true }
}

/**
 * Path of a Chromium that is installed, or undefined. Throws when a path that was asked for is not there.
 * For a GPU the headless shell comes last: it was never seen with one.
 */
export function findChromium(gpu: Gpu = 'software'): string | undefined {
  for (const name of ['CHROMIUM_PATH', 'CHROME_PATH']) {
    const path = process.env[name]
    if (!path) continue
    if (isExecutable(path)) return path
    throw new Error(
      `${name} is ${path}, which is not a program that can be run. Correct or unset it.`,
    )
  }
  const windowed = listWindowed()
  const shell = onPath([SHELL])
  const installed = (gpu === 'hardware' ? [...windowed, ...shell] : [...shell, ...windowed]).find(
    starts,
  )
  if (installed) return installed
  const own = chromium.executablePath()
  return own && existsSync(own) ? own : undefined
}

const listWindowed = () => [...onPath(WINDOWED), ...(PLACES[process.platform] ?? [])]

/** Path of a Chromium that is not the headless shell, or undefined. Only it has extensions. */
export const findWindowedChromium = (): string | undefined => listWindowed().find(starts)

/** Path of Chromium, installing one if there is none. Throws with what to do when that fails. */
export function ensureChromium(gpu: Gpu = 'software'): string {
  const found = findChromium(gpu)
  if (found) return found
  say('No Chromium is installed.')
  for (const install of hasApt() ? [fromApt(SHELL), fetchOwn, fromApt('chromium')] : [fetchOwn]) {
    install()
    const installed = findChromium(gpu)
    if (installed) return installed
    say('That failed.')
  }
  throw new Error(
    'No Chromium was found and none could be installed. Install Chromium or Chrome yourself, ' +
      'or set CHROMIUM_PATH to the program.',
  )
}

/** Returns what installs a package of Debian. Its kin may lack it: Ubuntu's is no program but a hint. */
function fromApt(name: string): () => void {
  return () => {
    say(`Installing the package "${name}" with apt-get ...`)
    installPackage(name)
  }
}

/** Fetches the one that Playwright ships. On Debian and its kin, the libraries it needs come from there. */
function fetchOwn(): void {
  say('Fetching the one that Playwright ships ...')
  const install = ['install', ...(hasApt() ? ['--with-deps'] : []), 'chromium']
  run(process.execPath, [join('node_modules', 'playwright', 'cli.js'), ...install])
}
