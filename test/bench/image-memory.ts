/** Memory that a browser takes at its peak for a question about a photograph of 24 megapixels. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright'
import { canReadPeaks, findProcesses, readMemory, resetPeak } from '../support/process-memory.ts'
import type { Site } from '../support/site.ts'
import { type Figure, median, reported } from './figure.ts'

const SIZE = [6_000, 4_000] as const
/** Questions, each about a photograph of its own. */
const ROUNDS = 3
/** Milliseconds after which an idle browser has collected what it can. */
const SETTLED_MS = 10_000

/** Asks about photographs in a tab whose model is loaded; empty where the system tells no peaks. */
export async function measureImageMemory(site: Site, page: Page, model: string): Promise<Figure[]> {
  if (!canReadPeaks()) return []
  const peaks: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const url = await drawPhotograph(site, round)
    await sleep(SETTLED_MS)
    const before = new Map<number, number>()
    for (const pid of await findProcesses(site.browser, ['renderer', 'GPU'])) {
      before.set(pid, readMemory(pid, 'VmRSS'))
      resetPeak(pid)
    }
    await ask(page, model, url)
    const growth = Array.from(before, ([pid, resting]) => readMemory(pid, 'VmHWM') - resting)
    peaks.push(growth.reduce((sum, bytes) => sum + bytes, 0) / 1e6)
  }
  const note =
    'growth of all processes of the browser at their peaks, a JPEG of 6,000 x 4,000, WASM'
  return [reported('image_24_megapixels_mb', median(peaks), note)]
}

/** Resolves with a JPEG as a data URL. The tab that draws it is closed. */
async function drawPhotograph(site: Site, seed: number): Promise<string> {
  const page = await site.open('/drawing.html')
  const url = await page.evaluate(
    async ({ width, height, hue }) => {
      const canvas = new OffscreenCanvas(width, height)
      const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
      for (let at = 0; at < 2_000; at += 1) {
        context.fillStyle = `hsl(${(hue * 90 + at * 7) % 360} 80% 50%)`
        context.fillRect((at * 379) % width, (at * 541) % height, 400, 300)
      }
      const blob = await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.9 })
      return new Promise<string>((resolve) => {
        const reader = new FileReader()
        reader.onload = () => resolve(String(reader.result))
        reader.readAsDataURL(blob)
      })
    },
    { width: SIZE[0], height: SIZE[1], hue: seed },
  )
  await page.close()
  return url
}

async function ask(page: Page, model: string, url: string): Promise<void> {
  const status = await page.evaluate(
    async (body) => {
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await fetch('/v1/chat/completions', init)
      await response.text()
      return response.status
    },
    {
      model,
      temperature: 0,
      max_tokens: 4,
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    },
  )
  if (status !== 200) throw new Error(`The question about a photograph has the status ${status}.`)
}
