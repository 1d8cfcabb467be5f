/** An app that `inorigin init --no-webgpu` has set up. */
import { expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { CliApp } from '../support/cli-app.ts'
import { askModel } from '../support/hub.ts'
import { BLANK, openSite, serveIn } from '../support/site.ts'

interface InPage {
  server: Server
}

test('answers on WASM, and says why the GPU is not used', { tags: ['slow'] }, async () => {
  const app = new CliApp()
  app.init('--no-webgpu')
  const folders = { '/': app.path('public') }
  const site = await openSite({ base: '/demo/', folders, pages: { '/blank.html': BLANK } })
  try {
    const page = await site.open('/blank.html')
    await serveIn(page)
    expect(await askModel(page, '@inorigin/guide')).toEqual([200, expect.stringMatching(/\w/)])
    const { device, reasons } = await page.evaluate(() =>
      (globalThis as unknown as InPage).server.explain('@inorigin/guide'),
    )
    expect(device.gpu).toBeNull()
    const onGpu = reasons.filter((reason) => reason.device === 'webgpu')
    expect(onGpu.length).toBeGreaterThan(0)
    for (const { why } of onGpu) expect(why).toBe('this app was set up without WebGPU')
    expect(site.requests.filter((line) => /jspi|asyncify/.test(line))).toEqual([])

    // The other page hosts with other options.
    const other = await site.open('/blank.html', await site.browser.newContext())
    await serveIn(other, { device: 'webgpu' })
    const refused = other.evaluate(() =>
      (globalThis as unknown as InPage).server.models.load('@inorigin/guide'),
    )
    await expect(refused).rejects.toThrow('this app was set up without WebGPU')
  } finally {
    await site.close()
    app.remove()
  }
})
