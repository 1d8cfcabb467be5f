/**
 * `npm run test:hub`: downloads the models of the default catalog from their hub, one by one, asks
 * each through `/v1` in Chromium, and prints a table for `docs/choosing-a-model.md`. It needs a
 * network and downloads gigabytes, so it is no part of CI.
 */
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright'
import { bytes } from '../../demo/format.ts'
import type { UsedImplementation } from '../../demo/bench/result.ts'
import type { Catalog, HubEntry, Tag } from '../../src/index.ts'
import { buildScripts } from '../bench/scripts.ts'
import { buildDemo } from '../setup/demo.ts'
import { runCommand } from '../support/command.ts'
import { canReadPeaks, findProcesses, readMemory, resetPeak } from '../support/process-memory.ts'
import { openSite, type Site } from '../support/site.ts'
import type { HubPage } from './page.ts'
import { isGood, toMarkdown, type ModelReport } from './table.ts'

const ROOT = join(import.meta.dirname, '../..')
const SCRIPTS = join(ROOT, 'node_modules/.cache/inorigin-hub')
const PUBLIC_HUB = 'https://huggingface.co/'
const USAGE =
  'npm run test:hub -- [--only TAG] [--device wasm|webgpu] [--json FILE] [--hub URL] [--built]'
/** Time in milliseconds that the hub has for its first response. */
const HUB_TIMEOUT_MS = 10_000

interface Wish {
  entries: HubEntry[]
  /** Address of the hub, with a trailing slash. */
  hub: string
  device: string
  json: string | undefined
  /** `true` to use the playground that is already built. */
  isBuilt: boolean
}

function readArguments(): Wish {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      device: { type: 'string', default: 'auto' },
      json: { type: 'string' },
      hub: { type: 'string', default: PUBLIC_HUB },
      built: { type: 'boolean', default: false },
    },
  })
  const { only, device, json, hub, built } = values
  if (!['auto', 'wasm', 'webgpu'].includes(device)) throw new Error(`Unknown device "${device}".`)
  const all = listHubEntries()
  for (const tag of only ?? []) {
    if (all.some((entry) => entry.tag === tag)) continue
    throw new Error(
      `Unknown tag "${tag}". Expected one of: ${all.map((one) => one.tag).join(', ')}.`,
    )
  }
  const entries = all.filter(({ tag }) => !only || only.includes(tag))
  return { entries, hub: new URL(hub).href, device, json, isBuilt: built }
}

/** Returns the entries of the default catalog whose files come from a hub. */
function listHubEntries(): HubEntry[] {
  const file = join(ROOT, 'demo/models/catalog.json')
  const { entries } = JSON.parse(readFileSync(file, 'utf8')) as Catalog
  return entries.filter((entry): entry is HubEntry => 'huggingface' in entry)
}

/** Rejects if the hub does not list the repository within {@link HUB_TIMEOUT_MS}. */
async function assertReachable(hub: string, repository: string): Promise<void> {
  const url = new URL(`api/models/${repository}/revision/main`, hub)
  const failure = await fetch(url, { signal: AbortSignal.timeout(HUB_TIMEOUT_MS) }).then(
    async (response) => {
      await response.body?.cancel()
      return response.ok ? undefined : `status ${response.status}`
    },
    (error: Error) => (error.cause instanceof Error ? error.cause.message : error.message),
  )
  if (failure === undefined) return
  const what = `${url.href} cannot be read: ${failure}.`
  throw new Error(`${what} This command needs a network. --hub names another hub or a mirror.`)
}

async function main(wish: Wish): Promise<boolean> {
  await assertReachable(wish.hub, wish.entries[0]?.huggingface ?? '')
  if (!wish.isBuilt) buildDemo()
  await buildScripts(SCRIPTS, { page: '../hub/page.ts' })
  // Only a profile on the disk has room for gigabytes.
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-hub-'))
  const site = await openSite({
    gpu: 'hardware',
    profile,
    folders: { '/hub/': SCRIPTS },
    pages: { '/hub.html': pageOf(wish) },
  })
  try {
    const plans = await printPlans(site, wish, profile)
    const reports: ModelReport[] = []
    for (const { tag } of wish.entries) {
      const report = await runModel(site, tag, plans.get(tag))
      console.log(`\n${tag}: ${isGood(report) ? 'ok' : 'FAILED'}\n`)
      reports.push(report)
    }
    console.log(toMarkdown(reports))
    if (wish.json !== undefined) {
      writeFileSync(wish.json, `${JSON.stringify(reports, null, 2)}\n`)
    }
    return reports.every(isGood)
  } finally {
    await site.close()
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

function pageOf({ entries, hub, device }: Wish): string {
  const catalog: Catalog = {
    version: 1,
    // The addresses of listed files are those of the public hub, so a mirror is asked for its own.
    entries: entries.map(({ implementations, ...entry }) => ({
      ...entry,
      ...(hub === PUBLIC_HUB && implementations && { implementations }),
      host: hub,
    })),
  }
  const options = JSON.stringify({ device, catalog, isolate: true })
  return `<!doctype html><meta charset="utf-8"><title>hub</title>
    <script type="module">
      import { serve } from '/inorigin/index.js'
      import { openHubPage } from '/hub/page.js'
      globalThis.hubPage = openHubPage(await serve(${options}))
    </script>`
}

/** Opens the page in a new tab and waits for its server. */
async function openPage(site: Site): Promise<Page> {
  const page = await site.open('/hub.html')
  page.on('console', (message) => message.type() === 'log' && console.log(message.text()))
  await page.waitForFunction(() => 'hubPage' in globalThis)
  return page
}

/** Calls a method of the page's {@link HubPage}. */
function call<Name extends keyof HubPage>(
  page: Page,
  name: Name,
  tag: Tag,
): Promise<Awaited<ReturnType<HubPage[Name]>>> {
  return page.evaluate(
    async ([method, given]) => {
      const { hubPage } = globalThis as unknown as { hubPage: HubPage }
      return hubPage[method](given)
    },
    [name, tag] as const,
  ) as Promise<Awaited<ReturnType<HubPage[Name]>>>
}

type Plans = Map<Tag, UsedImplementation | Error>

/** Prints what will be downloaded. Resolves with the implementation of each model, or its error. */
async function printPlans(site: Site, { entries }: Wish, profile: string): Promise<Plans> {
  const page = await openPage(site)
  const plans: Plans = new Map()
  for (const { tag } of entries) {
    const plan = await call(page, 'plan', tag).catch(toError)
    plans.set(tag, plan)
    const what = plan instanceof Error ? plan.message : `${plan.id}, ${bytes(plan.bytes)}`
    console.log(`${tag}: ${what}`)
  }
  await page.close()
  const sizes = [...plans.values()].map((plan) => (plan instanceof Error ? 0 : plan.bytes))
  const total = sizes.reduce((sum, size) => sum + size, 0)
  const { bavail, bsize } = statfsSync(profile)
  const largest = bytes(Math.max(...sizes))
  console.log(
    `\n${bytes(total)} will be downloaded and deleted again, one model at a time. ` +
      `The largest needs ${largest} of disk; ${bytes(bavail * bsize)} are free in ${tmpdir()}.\n`,
  )
  return plans
}

/** Measures and checks one model in a tab of its own, and deletes its files. */
async function runModel(
  site: Site,
  tag: Tag,
  plan: UsedImplementation | Error | undefined,
): Promise<ModelReport> {
  if (plan instanceof Error) return { tag, error: plan.message }
  const report: ModelReport = { tag }
  const page = await openPage(site)
  try {
    const pids = canReadPeaks() ? await findProcesses(site.browser, ['renderer', 'GPU']) : null
    pids?.forEach(resetPeak)
    report.measurements = await call(page, 'measure', tag)
    report.memoryBytes = pids && pids.reduce((sum, pid) => sum + readMemory(pid, 'VmHWM'), 0)
    report.checks = await call(page, 'check', tag)
  } catch (thrown) {
    report.error = toError(thrown).message
  }
  const left = await call(page, 'remove', tag).catch(toError)
  if (left !== 0) report.error ??= `its files were not deleted: ${String(left)}`
  await page.close()
  return report
}

/** Returns an error with the first line of its message, without what Playwright puts before it. */
function toError(thrown: unknown): Error {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const [line = ''] = message.replace(/^page\.evaluate: (\w*Error: )?/, '').split('\n')
  return new Error(line)
}

await runCommand(USAGE, readArguments, main)
