/** Ours beside transformers.js: both in dedicated workers, in turns, on files made for the purpose. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { openSite, type Site } from '../support/site.ts'
import { drawModel } from './models/weights.ts'
import { buildScripts } from './scripts.ts'
import type { Answers, Order, SideName } from './side.ts'

const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, 'node_modules/.cache/inorigin-bench')
const SCRIPTS = join(CACHE, 'sides')
/** Folder of the models that are drawn. */
export const MODELS = join(CACHE, 'models')

const PAGE = '<!doctype html><meta charset="utf-8"><title>bench</title>'

/** Installs what is compared with, draws the models and builds both workers. */
export async function prepareComparison(): Promise<void> {
  if (!existsSync(join(import.meta.dirname, 'node_modules/@huggingface/transformers'))) {
    const args = [
      'ci',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--prefix',
      import.meta.dirname,
    ]
    execFileSync('npm', args, { stdio: 'inherit' })
  }
  for (const name of ['small', 'large']) {
    drawModel(name, join(MODELS, name), join(ROOT, 'demo/models/guide'))
  }
  const sides = { inorigin: 'side-inorigin.ts', transformers: 'side-transformers.ts' }
  await buildScripts(SCRIPTS, sides, 'error')
}

/** A site with the models, both sides and their runtimes; on a GPU where the machine has one. */
export async function openComparison(): Promise<Site> {
  const runtime = join(import.meta.dirname, 'node_modules/onnxruntime-web/dist')
  const open = (gpu: 'software' | 'hardware'): Promise<Site> =>
    openSite({
      gpu,
      folders: { '/bench/models/': MODELS, '/bench/sides/': SCRIPTS, '/bench/ort/': runtime },
      pages: { '/side.html': PAGE },
    })
  const site = await open('hardware')
  const adapter = await findAdapter(site)
  if (adapter && !adapter.software) return site
  await site.close()
  return open('software')
}

export interface Adapter {
  name: string
  software: boolean
}

export async function findAdapter(site: Site): Promise<Adapter | null> {
  const page = await site.open('/side.html')
  const found = await page.evaluate(async () => {
    const adapter = await navigator.gpu?.requestAdapter()
    const { vendor = '', architecture = '', isFallbackAdapter = false } = adapter?.info ?? {}
    return adapter ? { name: `${vendor} ${architecture}`, software: isFallbackAdapter } : null
  })
  await page.close()
  return found
}

/** One side in a tab and a worker of its own. */
export interface OpenSide {
  order<T extends Order['type']>(order: Order & { type: T }): Promise<Answers[T]>
  page: Page
  close(): Promise<void>
}

export async function openSide(site: Site, name: SideName): Promise<OpenSide> {
  const page = await site.open('/side.html')
  await page.evaluate((script) => {
    Object.assign(globalThis, { side: new Worker(script, { type: 'module' }) })
  }, `/bench/sides/${name}.js`)
  return {
    page,
    close: () => page.close(),
    async order<T extends Order['type']>(order: Order & { type: T }): Promise<Answers[T]> {
      const { answer, error } = await page.evaluate((what) => {
        const { side } = globalThis as unknown as { side: Worker }
        return new Promise<{ answer?: unknown; error?: string }>((resolve) => {
          side.onmessage = ({ data }) => resolve(data)
          side.onerror = ({ message }) => resolve({ error: message })
          side.postMessage(what)
        })
      }, order)
      if (error !== undefined) throw new Error(`${name}: ${error}`)
      return answer as Answers[T]
    },
  }
}
