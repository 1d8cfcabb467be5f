/** Ten thousand predictions of every kind of input: memory is as it was after the first thousand. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { MIXED, VALUES, valuesCatalog } from '../support/values.ts'

const COUNT = Number(process.env['LONG_COUNT'] ?? 10_000)
/** Runs before each look at the memory, for which the browser takes up to a minute. */
const STEPS = [0.1, 0.4, 0.5].map((part) => Math.round(part * COUNT))
/** What may come and go: caches of the browser, and what its collector has not come to yet. */
const SLACK = 6 * 2 ** 20
/** The same of the process from half of the runs on: it takes its time to fill its own caches. */
const PROCESS_SLACK = 32 * 2 ** 20

let site: Site
let page: Page

beforeAll(async () => {
  const pages = { '/catalog.json': JSON.stringify(valuesCatalog(MIXED)) }
  // Memory is told to isolated pages only.
  const headers = {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  }
  site = await openSite({ folders: VALUES, pages, headers })
  page = await site.open()
  await serveIn(page, { catalog: '/catalog.json', device: 'wasm' })
})

afterAll(() => site?.close())

/** Bytes. */
interface Memory {
  /** Of the page and its workers, objects and wasm memory: after a collection, as the browser tells. */
  told: number
  /** Of the process that they are in, pixels and buffers included. */
  process: number
}

async function look(): Promise<Memory> {
  const told = await page.evaluate(async () => {
    const { measureUserAgentSpecificMemory } = performance as unknown as {
      measureUserAgentSpecificMemory?: () => Promise<{ bytes: number }>
    }
    return (await measureUserAgentSpecificMemory?.call(performance))?.bytes ?? 0
  })
  const session = await site.browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  const renderers = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => residentOf(id))
  return { told, process: Math.max(...renderers) }
}

const inMiB = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)

function residentOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/** Runs that many predictions, frames of a canvas that changes among them; the answers that differ. */
const run = (from: number, count: number): Promise<number> =>
  page.evaluate(
    async ([first, many]) => {
      const { server } = globalThis as unknown as { server: Server }
      const digits = await server.predictor('@inorigin/digits')
      const mixed = await server.predictor('@values/mixed')
      const canvas = new OffscreenCanvas(96, 96)
      const context = canvas.getContext('2d', { willReadFrequently: true })!
      let wrong = 0
      for (let index = first; index < first + many; index += 1) {
        context.fillStyle = 'white'
        context.fillRect(0, 0, 96, 96)
        context.fillStyle = 'black'
        context.fillRect(40 + (index % 12), 16, 8, 64)
        const kinds = [
          () => canvas,
          () => context.getImageData(0, 0, 96, 96),
          () => createImageBitmap(canvas),
          () => new VideoFrame(canvas, { timestamp: index }),
        ]
        const make = kinds[index % 5]
        if (make) {
          const image = await make()
          const { outputs } = await digits.predict({ image })
          if (outputs['digit'] !== 'one') wrong += 1
          if (image instanceof VideoFrame || image instanceof ImageBitmap) image.close()
          continue
        }
        const data = new Float32Array(3 * 1000).fill(index)
        const { outputs } = await mixed.predict({
          matrix: { data, shape: [1000, 3] },
          count: index,
          texts: ['frame', String(index)],
        })
        if (outputs['next'] !== BigInt(index + 1)) wrong += 1
      }
      return wrong
    },
    [from, count] as const,
  )

test(`${COUNT} predictions leave nothing behind`, async () => {
  const looks: Memory[] = []
  let done = 0
  for (const step of STEPS) {
    expect(await run(done, step)).toBe(0)
    done += step
    const seen = await look()
    looks.push(seen)
    console.log(
      `${done} runs: ${inMiB(seen.told)} MiB told, ${inMiB(seen.process)} MiB of the process`,
    )
  }
  const [first, half, last] = looks
  expect(first?.told).toBeGreaterThan(0)
  expect((last?.told ?? Infinity) - (first?.told ?? 0)).toBeLessThan(SLACK)
  expect((last?.process ?? Infinity) - (half?.process ?? 0)).toBeLessThan(PROCESS_SLACK)
})
