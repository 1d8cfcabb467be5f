/** Runs once before the end-to-end tests: builds everything and serves the playground. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { preview } from 'vite'
import type { TestProject } from 'vitest/node'
import { ensureChromium } from './chromium.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the built playground, with a trailing slash. */
    demo: string
  }
}

const ROOT = join(import.meta.dirname, '../..')

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  process.env['CHROMIUM_PATH'] = ensureChromium()
  const { VITEST: _, ...env } = process.env
  execFileSync('npm', ['run', 'build'], { cwd: ROOT, env, stdio: 'inherit', shell: process.platform === 'win32' })
  const server = await preview({
    configFile: join(ROOT, 'vite.config.ts'),
    root: join(ROOT, 'demo'),
    preview: { port: 0, open: false },
  })
  const [url] = server.resolvedUrls?.local ?? []
  if (!url) throw new Error('The playground is not served on this machine.')
  project.provide('demo', url)
  return () => server.close()
}
