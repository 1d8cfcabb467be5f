/** Builds and packs the package, once for the tests of apps, and starts the browser. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { ensureChromium } from '../setup/chromium.ts'
import { buildDemo } from '../setup/demo.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the packed package. */
    tarball: string
  }
}

const ROOT = join(import.meta.dirname, '../..')

export default function setup(project: TestProject): () => void {
  process.env['CHROMIUM_PATH'] = ensureChromium()
  buildDemo()
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-tarball-'))
  const shell = process.platform === 'win32'
  const flags = ['--ignore-scripts', '--json', '--pack-destination', folder]
  const options = { cwd: ROOT, shell, encoding: 'utf8' } as const
  const out = execFileSync('npm', ['pack', ...flags], options)
  const [packed] = JSON.parse(out) as { filename: string }[]
  if (!packed) throw new Error('npm pack made no tarball.')
  project.provide('tarball', join(folder, packed.filename))
  return () => rmSync(folder, { recursive: true, force: true })
}
