/** Downloads from a server that does what it can to spoil them, and downloads that are killed. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { fileOn, type Fault, type ServedFile } from '../support/content.ts'
import { openFaults, type FaultServer } from '../support/faults.ts'
import { killDownloads } from '../support/kills.ts'
import { createChance, type Chance } from '../support/random.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { CHUNK, digest, entryOf, load, MIB, storage } from '../support/stored.ts'

const COUNT = Number(process.env['LONG_COUNT'] ?? 200)
const KILLS = Number(process.env['LONG_KILLS'] ?? 50)
const SEED = Number(process.env['LONG_SEED'] ?? 1)

/** At once: most of the time is spent waiting for servers that are silent or busy. */
const TOGETHER = 10

let faults: FaultServer
let site: Site

beforeAll(async () => {
  faults = await openFaults()
  site = await openSite()
})

afterAll(async () => {
  await site?.close()
  await faults?.close()
})

/** One thing that goes wrong, somewhere in a file of that length. */
function faultOf(chance: Chance, bytes: number): Fault {
  const at = chance.below(bytes)
  return chance.pick<() => Fault>([
    () => ({ cut: at }),
    () => ({ cut: at, sure: true }),
    () => ({ end: at }),
    () => ({ stall: at }),
    () => ({ ignoreRange: true, cut: at }),
    () => ({ ignoreEnd: true }),
    () => ({ contentRange: `bytes ${at}-${bytes - 1}/${bytes}`, shift: chance.below(100) }),
    () => ({ shift: 1 + chance.below(1000) }),
    () => ({ contentRange: 'nonsense' }),
    () => ({ contentRange: '' }),
    () => ({ html: true }),
    () => ({ corrupt: at }),
    () => ({ extra: 1 + chance.below(1000) }),
    () => ({ etag: `"${chance.below(3)}"`, corrupt: at, cut: at }),
    () => ({ status: 429, retryAfter: String(chance.below(3)) }),
    () => ({ status: chance.pick([500, 502, 503, 504, 408, 416]) }),
  ])()
}

async function checkOne(page: Page, file: ServedFile, tag: string, plan: string): Promise<string> {
  const { sha256, bytes } = file.resource
  const first = await digest(page, sha256)
  const its = (await storage(page, 'list')).find((stored) => stored.tag === tag)
  if (first === sha256) {
    expect(its, plan).toMatchObject({ status: 'stored', bytes })
    return 'right'
  }
  // A clear error, nothing of which counts as whole, and once the server is well all is well.
  expect(first, plan).toBe('failed')
  expect(its?.status, plan).not.toBe('stored')
  for (let attempt = 0; attempt < 8; attempt++) {
    const code = await load(page, tag)
    // What the files hold is no model: this is what comes behind a download.
    if (code === 'model_unusable') break
    expect(code, plan).toBeOneOf(['download_failed', 'hash_mismatch'])
  }
  expect(await digest(page, sha256), plan).toBe(sha256)
  return 'refused first'
}

test(`${COUNT} downloads end byte by byte as they should, or with a clear error`, async () => {
  const chance = createChance(SEED)
  const tally = new Map<string, number>()
  for (let from = 0; from < COUNT; from += TOGETHER) {
    const files = await Promise.all(
      Array.from({ length: Math.min(TOGETHER, COUNT - from) }, async (_, index) => {
        const bytes = 1 + chance.below(chance.often(0.3) ? 40 * MIB : 3 * MIB)
        const wrong = Array.from({ length: 1 + chance.below(5) }, () => faultOf(chance, bytes))
        const file = await fileOn(faults.url, { bytes, piece: MIB / 4, faults: wrong })
        return { file, tag: `@me/file-${from + index}`, plan: JSON.stringify({ bytes, wrong }) }
      }),
    )
    const page = await site.open('/blank.html', await site.browser.newContext())
    const entries = files.map(({ file, tag }) => entryOf(tag, file))
    await serveIn(page, { catalog: { version: 1, entries } })
    await Promise.all(
      files.map(async ({ file, tag, plan }) => {
        const outcome = await checkOne(page, file, tag, plan)
        tally.set(outcome, (tally.get(outcome) ?? 0) + 1)
      }),
    )
    await page.context().close()
  }
  console.log(`seed ${SEED}:`, Object.fromEntries(tally))
  expect([...tally.values()].reduce((sum, count) => sum + count, 0)).toBe(COUNT)
})

test('room that others take in the middle of a download is made again, or said to be missing', async () => {
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  const own = await openSite({ profile })
  try {
    const page = await own.open()
    const cdp = await own.context.newCDPSession(page)
    const { origin } = new URL(own.url)
    const grant = (megabytes: number) =>
      cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: megabytes * 1e6 })
    // Chromium looks how much is left every 30 s.
    const slow = Array.from({ length: 20 }, () => ({ slow: 250 }))
    const fast = () => fileOn(faults.url, { bytes: 30 * MIB, piece: MIB })
    const tedious = () => fileOn(faults.url, { bytes: 60 * MIB, piece: MIB / 4, faults: slow })
    const files = {
      one: await fast(),
      two: await fast(),
      three: await tedious(),
      four: await tedious(),
    }
    const entries = Object.entries(files).map(([name, file]) => entryOf(`@me/${name}`, file))
    await serveIn(page, { catalog: { version: 1, entries } })
    const tagsHere = async () => (await storage(page, 'list')).map(({ tag }) => tag).toSorted()
    const loadWhile = async (name: 'three' | 'four', megabytes: number) => {
      await grant(1000)
      const loaded = load(page, `@me/${name}`)
      const sent = async () => (await files[name].seen())[0]?.sent ?? 0
      await expect.poll(sent).toBeGreaterThanOrEqual(4 * MIB)
      await grant(megabytes)
      return loaded
    }

    for (const name of ['one', 'two']) await load(page, `@me/${name}`)
    await storage(page, 'pin', '@me/two')
    expect(await loadWhile('three', 110)).toBe('model_unusable')
    expect(await tagsHere()).toEqual(['@me/three', '@me/two'])
    const { sha256 } = files.three.resource
    expect(await digest(page, sha256)).toBe(sha256)

    await storage(page, 'pin', '@me/three')
    expect(await loadWhile('four', 110)).toBe('storage_full')
    expect(await tagsHere()).toEqual(['@me/four', '@me/three', '@me/two'])
    const last = (await storage(page, 'list')).find(({ tag }) => tag === '@me/four')
    expect(last).toMatchObject({ status: 'partial', inUse: false })
  } finally {
    await own.close()
    rmSync(profile, { recursive: true, force: true })
  }
})

test(`${KILLS} downloads that are killed lose one chunk at most each`, async () => {
  const { losses, right } = await killDownloads(KILLS, SEED)
  expect(losses).toHaveLength(KILLS)
  const worst = Math.max(...losses.map(({ told, kept }) => told - kept))
  console.log(`seed ${SEED}: at most ${worst} bytes lost, ${right.length} files`)
  for (const { way, told, kept } of losses) {
    expect(kept % CHUNK, way).toBe(0)
    expect(told - kept, way).toBeLessThanOrEqual(CHUNK)
  }
  expect(right).not.toContain(false)
})
