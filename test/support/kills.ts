/** Pages, renderers and browsers that end in the middle of a download. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright'
import { expect } from 'vitest'
import type { LoadProgress, Server } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { fileOn, type ServedFile } from './content.ts'
import { createDeferred } from './deferred.ts'
import { openFaults } from './faults.ts'
import { createChance } from './random.ts'
import { openSite, serveIn } from './site.ts'
import { digest, entryOf, MIB } from './stored.ts'

export interface Loss {
  /** Name of the way in which the download was ended. */
  way: string
  /** Bytes that had been told to be here. */
  told: number
  /** Bytes from which the next visit went on. */
  kept: number
}

export interface Kills {
  losses: Loss[]
  /** `true` for each file that was right in the end. */
  right: boolean[]
}

const WAYS = ['close the page', 'crash the page', 'crash the browser'] as const
const BYTES = 100 * MIB

interface InPage {
  server: Server
  tell: (bytes: number) => void
}

/** Kills so many downloads, each at another place, and lets every file come to its end. */
export async function killDownloads(count: number, seed: number): Promise<Kills> {
  const chance = createChance(seed)
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  const faults = await openFaults()
  // Only its server: the browsers are started here, as they have to be again and again.
  const site = await openSite()
  const losses: Loss[] = []
  const right: boolean[] = []
  let context: BrowserContext | undefined

  async function visit(file: ServedFile, onBytes: (bytes: number) => void): Promise<Page> {
    context ??= await chromium.launchPersistentContext(profile, chromiumLaunch())
    const page = await site.open('/blank.html', context)
    await page.exposeFunction('tell', onBytes)
    await serveIn(page, { catalog: { version: 1, entries: [entryOf('@me/one', file)] } })
    await page.evaluate(() => {
      const { server, tell } = globalThis as unknown as InPage
      const onProgress = ({ loadedBytes }: LoadProgress) => tell(loadedBytes)
      server.models.load('@me/one', { onProgress }).catch(() => undefined)
    })
    return page
  }

  async function end(page: Page, way: (typeof WAYS)[number]): Promise<void> {
    if (way === 'close the page') return page.close()
    const method = way === 'crash the page' ? 'Page.crash' : 'Browser.crash'
    const cdp = await page.context().newCDPSession(page)
    const gone = way === 'crash the page' ? page.waitForEvent('crash') : page.waitForEvent('close')
    cdp.send(method).catch(() => undefined)
    await gone
    if (way === 'crash the page') return page.close()
    await context?.close().catch(() => undefined)
    context = undefined
  }

  try {
    while (losses.length < count) {
      const slow = Array.from({ length: 20 }, () => ({ slow: 10 }))
      const file = await fileOn(faults.url, { bytes: BYTES, piece: MIB / 2, faults: slow })
      let kept = 0
      while (losses.length < count && kept < BYTES - 40 * MIB) {
        const goal = kept + 1 + chance.below(36 * MIB)
        let told = 0
        const reached = createDeferred()
        const page = await visit(file, (bytes) => {
          told = Math.max(told, bytes)
          if (bytes >= goal) reached.resolve()
        })
        await reached.promise
        const way = WAYS[losses.length % WAYS.length]!
        await end(page, way)
        // The next visit says from where it goes on.
        const before = (await file.seen()).length
        const next = await visit(file, () => undefined)
        await expect.poll(async () => (await file.seen()).length).toBeGreaterThan(before)
        kept = Number(/^bytes=(\d+)-/.exec((await file.seen())[before]?.range ?? '')?.[1] ?? 0)
        losses.push({ way, told, kept })
        await next.close()
      }
      const last = await visit(file, () => undefined)
      right.push((await digest(last, file.resource.sha256)) === file.resource.sha256)
      await last.close()
    }
    return { losses, right }
  } finally {
    await context?.close()
    await site.close()
    await faults.close()
    rmSync(profile, { recursive: true, force: true })
  }
}
