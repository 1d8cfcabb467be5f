/** The built playground, for the end-to-end tests and `npm run ask`. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { chromium } from 'playwright'
import { preview } from 'vite'
import type { TestProject } from 'vitest/node'
import { chromiumLaunch, ensureChromium, SHORT_LIVED_ARGS } from './chromium.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the built playground, with a trailing slash. */
    demo: string
  }
}

const ROOT = join(import.meta.dirname, '../..')

export interface Demo {
  /** With a trailing slash. */
  url: string
  close(): Promise<void>
}

/**
 * Builds the package and the playground, unless `INORIGIN_BUILT` says that they are built. The types of the package
 * take half as long as all the rest.
 */
export function buildDemo(withTypes = true): void {
  if (process.env['INORIGIN_BUILT']) return
  // Else it would build as the tests see it.
  const { VITEST: _, NODE_ENV: __, ...env } = process.env
  const shell = process.platform === 'win32'
  const args = withTypes ? ['run', 'build'] : ['exec', 'vite', 'build']
  execFileSync('npm', args, { cwd: ROOT, env, shell, stdio: 'inherit' })
}

/** Serves what was built, as `npm start` does, on a free port. */
export async function serveDemo(): Promise<Demo> {
  const server = await preview({
    configFile: join(ROOT, 'vite.config.ts'),
    root: join(ROOT, 'demo'),
    logLevel: 'warn',
    preview: { port: 0, strictPort: false, open: false },
  })
  const [url] = server.resolvedUrls?.local ?? []
  if (!url) throw new Error('The playground has no local address.')
  return { url, close: () => server.close() }
}

/**
 * Runs once before the end-to-end tests. They read the address with `inject('demo')`, and connect to
 * the one browser by `CHROMIUM_ENDPOINT`.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  process.env['CHROMIUM_PATH'] = ensureChromium()
  // No everyday test looks at the types.
  buildDemo(project.getProvidedContext().runsAll)
  const demo = await serveDemo()
  const launch = chromiumLaunch()
  const browser = await chromium.launchServer({
    ...launch,
    args: [...(launch.args ?? []), ...SHORT_LIVED_ARGS],
  })
  process.env['CHROMIUM_ENDPOINT'] = browser.wsEndpoint()
  project.provide('demo', demo.url)
  return async () => {
    await browser.close()
    await demo.close()
  }
}
