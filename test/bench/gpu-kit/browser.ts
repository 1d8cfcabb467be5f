/** Chromium with the GPU of a bare Linux machine, on a site with the sides and the models. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright'
import { serveStatic, type StaticServer } from '../../support/static.ts'
import { ISOLATION, PAGE } from '../open-side.ts'
import type { AdapterName } from './plan.ts'

/**
 * Chromium finds a GPU of Linux without a display only by Vulkan. The sandbox keeps NVIDIA's driver from
 * its devices.
 */
const GPU_ARGS = [
  '--enable-unsafe-webgpu',
  '--enable-features=Vulkan',
  '--use-angle=vulkan',
  '--disable-vulkan-surface',
  '--disable-gpu-sandbox',
  '--ignore-gpu-blocklist',
]

const ADAPTER_ARGS: Readonly<Record<AdapterName, readonly string[]>> = {
  // Dawn keeps `shader-f16` from NVIDIA's driver for Linux unless it is told to offer it.
  f16: [...GPU_ARGS, '--enable-dawn-features=vulkan_enable_f16_on_nvidia,allow_unsafe_apis'],
  plain: GPU_ARGS,
  swiftshader: ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
}

const OTHER_ARGS = ['--no-sandbox', '--disable-background-networking', '--disable-dev-shm-usage']

/** Returns the flags of Chromium for an adapter. */
export const flagsOf = (adapter: AdapterName): string[] => [...ADAPTER_ARGS[adapter], ...OTHER_ARGS]

/** Where NVIDIA's driver, and containers that it is mounted in, have the file that names it. */
export const DRIVER_FILES = [
  '/usr/share/vulkan/icd.d/nvidia_icd.json',
  '/usr/share/vulkan/icd.d/nvidia_icd.x86_64.json',
  '/etc/vulkan/icd.d/nvidia_icd.json',
  '/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json',
]

/**
 * Returns the environment of Chromium. Vulkan's loader gets the file of NVIDIA's driver by name, as
 * containers have it in a folder where the loader does not look. `VK_DRIVER_FILES` overrides it.
 */
export function environmentOf(adapter: AdapterName): Record<string, string> {
  const given = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  const env: Record<string, string> = Object.fromEntries(given)
  const driver = env['VK_DRIVER_FILES'] ?? DRIVER_FILES.find((file) => existsSync(file))
  if (adapter === 'swiftshader' || driver === undefined) return env
  return { ...env, VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver }
}

/** Folders of an unpacked kit. */
export interface Kit {
  /** Sides, runtimes and the playground. */
  app: string
  /** Models, which are written where the kit runs. */
  data: string
  /** Path of Chromium. */
  chromium: string
}

/** Serves what sides need, as the bench does. */
export const serveKit = ({ app, data }: Kit): Promise<StaticServer> =>
  serveStatic({
    folders: {
      '/bench/models/': join(data, 'models'),
      '/bench/mlc/': join(data, 'mlc'),
      '/bench/sides/': join(app, 'sides'),
      '/bench/ort/': join(app, 'ort'),
      '/bench/wllama/': join(app, 'wllama'),
      '/': join(app, 'playground'),
    },
    pages: { '/side.html': PAGE, '/isolated.html': PAGE },
    headers: (path) => (path === '/side.html' ? {} : ISOLATION),
  })

/** Starts a browser, which has nothing of an earlier one. */
export const launch = (kit: Kit, adapter: AdapterName): Promise<Browser> =>
  chromium.launch({
    executablePath: kit.chromium,
    args: flagsOf(adapter),
    env: environmentOf(adapter),
    headless: true,
  })

/** Milliseconds in which a browser should close. One that hangs is left to the end of the process. */
const CLOSE_MS = 5_000

export async function close(browser: Browser): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
  await Promise.race([browser.close(), late])
  clearTimeout(timer)
}
