/** An app that `inorigin init --no-webgpu` has set up. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { BLANK, openSite, serveIn, type Site } from '../support/site.ts'

const CLI = join(import.meta.dirname, '../../dist/cli.js')

let app: string
let site: Site

beforeAll(async () => {
  app = mkdtempSync(join(tmpdir(), 'inorigin-no-webgpu-'))
  const { status, stderr } = spawnSync(process.execPath, [CLI, 'init', 'public', '--no-webgpu'], {
    cwd: app,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  site = await openSite({
    base: '/demo/',
    folders: { '/': join(app, 'public') },
    pages: { '/blank.html': BLANK },
  })
})

afterAll(async () => {
  await site?.close()
  rmSync(app, { recursive: true, force: true })
})

test('answers on WASM, and says why the GPU is not used', { tags: ['slow'] }, async () => {
  const page = await site.open('/blank.html')
  await serveIn(page)
  const found = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const response = await server.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: '@inorigin/guide',
        messages: [{ role: 'user', content: 'Who are you?' }],
        max_tokens: 8,
      }),
    })
    const { choices } = await response.json()
    return {
      text: choices[0].message.content,
      explanation: await server.explain('@inorigin/guide'),
    }
  })
  expect(found.text).not.toBe('')
  expect(found.explanation.device.gpu).toBeNull()
  const onGpu = found.explanation.reasons.filter(({ device }) => device === 'webgpu')
  expect(onGpu.length).toBeGreaterThan(0)
  for (const { why } of onGpu) expect(why).toBe('this app was set up without WebGPU')
  expect(site.requests.filter((line) => /jspi|asyncify/.test(line))).toEqual([])
})

test('refuses WebGPU by name where the app asks for it', { tags: ['slow'] }, async () => {
  // The other page hosts with other options.
  const page = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(page, { device: 'webgpu' })
  const error = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    return server.models.load('@inorigin/guide').then(
      () => '',
      (thrown: unknown) => String(thrown),
    )
  })
  expect(error).toContain('this app was set up without WebGPU')
})
