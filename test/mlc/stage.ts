/** A built app in a browser, which has one model that MLC compiled. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import type { Endpoint } from '../contract/wire.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { fetchThrough } from '../support/requests.ts'
import { serveStatic } from '../support/static.ts'
import { checkGpu, checkNetwork, readSetting, type Setting } from './setting.ts'

export const TAG = '@test/real'
const ROOT = join(import.meta.dirname, '../..')
const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/catalog.json' })
</script>`

export interface Stage {
  setting: Setting
  page: Page
  endpoint: Endpoint
  /** Loads the model, and says how long that took. */
  load(): Promise<void>
  close(): Promise<void>
}

/** Opens the app. Rejects with what is missing on this machine. */
export async function openStage(): Promise<Stage> {
  const app = mkdtempSync(join(tmpdir(), 'inorigin-mlc-real-'))
  const setting = readSetting(join(app, 'weights'))
  await checkNetwork(setting)
  writeFileSync(join(app, 'package.json'), '{}\n')
  const init = [join(ROOT, 'dist/cli.js'), 'init', 'public', '--no-guide', '--mlc']
  const { status, stderr } = spawnSync(process.execPath, init, { cwd: app, encoding: 'utf8' })
  if (status !== 0) throw new Error(`inorigin init failed: ${stderr}`)
  const catalog = { version: 1, entries: [{ tag: TAG, mlc: setting.mlc }] }
  const site = await serveStatic({
    folders: { ...setting.folders, '/': join(app, 'public') },
    pages: { '/app.html': PAGE, '/catalog.json': JSON.stringify(catalog) },
  })
  const browser = await chromium.launch(chromiumLaunch(setting.software ? 'software' : 'hardware'))
  const page = await browser.newPage()
  await page.goto(`${site.url}/app.html`)
  const gpu = await checkGpu(page, setting)
  await page.waitForFunction(() => 'server' in globalThis)
  return {
    setting,
    page,
    endpoint: { fetch: fetchThrough(page) },
    async load() {
      const start = performance.now()
      await page.evaluate(
        async (tag) => (globalThis as unknown as { server: Server }).server.models.load(tag),
        TAG,
      )
      const seconds = ((performance.now() - start) / 1000).toFixed(1)
      console.info(`${JSON.stringify(setting.mlc)} on ${gpu}: loaded in ${seconds} s`)
    },
    async close() {
      await browser.close()
      await site.close()
      rmSync(app, { recursive: true, force: true })
    },
  }
}

/** Removes the model from the page's storage, and returns how it is listed then. */
export const removeModel = (page: Page): Promise<string | undefined> =>
  page.evaluate(async (tag) => {
    const { server } = globalThis as unknown as { server: Server }
    await server.models.remove(tag)
    return (await server.models.list()).find((one) => one.tag === tag)?.status
  }, TAG)
