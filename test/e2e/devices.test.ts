/** Where models run, what is in memory and in the store, and pages without a service worker. */
import { chromium, type Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import type { LoadProgress, Server } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { workersOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

function greedy(page: Page, content: string, max_tokens: number): Promise<string> {
  return page.evaluate(
    async ([question, limit]) => {
      const { server } = globalThis as unknown as InPage
      const response = await server.fetch('/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: '@inorigin/guide',
          temperature: 0,
          max_tokens: limit,
          messages: [{ role: 'user', content: question }],
        }),
      })
      const body = await response.json()
      return response.ok
        ? String(body.choices[0].message.content)
        : `${response.status} ${body.error.message}`
    },
    [content, max_tokens] as const,
  )
}

function list(page: Page): Promise<[string, string, string | null][]> {
  return page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const states = await server.models.list()
    return states.map(
      ({ tag, status, device }) => [tag, status, device] as [string, string, string | null],
    )
  })
}

// That both write the same text is compared in lost.test.ts.
test(
  'auto ranks a software adapter below wasm, and webgpu is taken where it is asked for',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    for (const [device, chosen] of [
      ['auto', 'wasm'],
      ['webgpu', 'webgpu'],
    ] as const) {
      const page = await site.open('/blank.html', await site.browser.newContext())
      await serveIn(page, { device })
      expect((await list(page))[0]).toEqual(['@inorigin/guide', 'remote', chosen])
    }
  },
)

test(
  'load tells bytes and phases; unload and remove give back memory and disk',
  { tags: ['slow'] },
  async () => {
    site = await openSite({ slow: { '/inorigin/models/guide/onnx/model.onnx': 4_000 } })
    const page = await site.open()
    await serveIn(page)
    const told = await page.evaluate(async () => {
      const { server } = globalThis as unknown as InPage
      const seen: LoadProgress[] = []
      await server.models.load('@inorigin/guide', { onProgress: (progress) => seen.push(progress) })
      return seen
    })
    const bytes = told.map((progress) => progress.loadedBytes)
    expect(bytes).toEqual([...bytes].sort((one, other) => one - other))
    expect(bytes.filter((count, index) => count !== bytes[index - 1]).length).toBeGreaterThan(3)
    expect(Math.max(...told.map((progress) => progress.bytesPerSecond))).toBeGreaterThan(100_000)
    expect([...new Set(told.map((progress) => progress.phase))]).toEqual([
      'download',
      'compile',
      'warm',
      'ready',
    ])
    expect(told.at(-1)?.loadedBytes).toBe(told.at(-1)?.totalBytes)

    const act = (what: 'unload' | 'remove') =>
      page.evaluate(async (name) => {
        const { server } = globalThis as unknown as InPage
        await server.models[name]('@inorigin/guide')
      }, what)
    const workers = () => workersOf(page, 'model-worker.js').length
    expect((await list(page))[0]?.[1]).toBe('loaded')
    expect(workers()).toBe(1)
    await act('unload')
    expect((await list(page))[0]?.[1]).toBe('stored')
    await expect.poll(workers).toBe(0)
    expect(await greedy(page, 'Hello', 3)).not.toMatch(/^\d{3} /)
    await act('remove')
    expect((await list(page))[0]?.[1]).toBe('remote')
  },
)

test(
  'a load that is aborted stops downloading and can be taken up again',
  { tags: ['slow'] },
  async () => {
    // The end of the file is held back, so that only the abort can end this load.
    const late = () => site.reports.length > 0
    site = await openSite({ slow: { '/inorigin/models/guide/onnx/model.onnx': late } })
    const page = await site.open()
    await serveIn(page)
    const kind = await page.evaluate(async () => {
      const { server } = globalThis as unknown as InPage
      const giveUp = new AbortController()
      return server.models
        .load('@inorigin/guide', {
          signal: giveUp.signal,
          onProgress: ({ loadedBytes }) => {
            if (giveUp.signal.aborted || loadedBytes < 500_000) return
            giveUp.abort()
          },
        })
        .then(
          () => 'loaded',
          (thrown: { kind: string }) => thrown.kind,
        )
    })
    expect(kind).toBe('aborted')
    await expect.poll(async () => (await list(page))[0]?.[1]).toBe('remote')
    await page.evaluate(() => fetch('/report', { method: 'POST', body: 'go on' }))
    expect(await greedy(page, 'Hello', 3)).not.toMatch(/^\d{3} /)
  },
)

test(
  'no WebGPU: wasm by itself, and 503 with the reason when webgpu is asked for',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const plain = await chromium.launch(chromiumLaunch('none'))
    try {
      const auto = await site.open('/blank.html', await plain.newContext())
      await serveIn(auto)
      expect((await list(auto))[0]?.[2]).toBe('wasm')
      const asked = await site.open('/blank.html', await plain.newContext())
      await serveIn(asked, { device: 'webgpu' })
      expect((await list(asked))[0]?.[2]).toBeNull()
      expect(await greedy(asked, 'Hello', 3)).toMatch(/^503 .*WebGPU/)
    } finally {
      await plain.close()
    }
  },
)

test('a page without a service worker is its own host and says so', async () => {
  site = await openSite()
  const context = await site.browser.newContext()
  await context.addInitScript(() => {
    // What Firefox does in windows that may keep nothing.
    ServiceWorkerContainer.prototype.register = () =>
      Promise.reject(new DOMException('The operation is insecure.', 'SecurityError'))
  })
  const page = await site.open('/blank.html', context)
  const warnings: string[] = []
  page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()))
  await serveIn(page)
  const controlled = await page.evaluate(() => (globalThis as unknown as InPage).server.controlled)
  expect(controlled).toBe(false)
  expect(warnings.join()).toContain('Use server.fetch')
  expect(await greedy(page, 'Hello', 3)).not.toMatch(/^\d{3} /)
})
