/**
 * `npm run test:wpt -- --dir DIR`: runs the web platform tests of the Prompt API against
 * `inorigin/language-model` in Chromium. They come from a checkout of the developer, and are no part
 * of this repository nor of CI.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { BrowserContext } from 'playwright'
import { buildDemo } from '../setup/demo.ts'
import { openSite, type Site } from '../support/site.ts'
import { BLESS, BOOTSTRAP, REPORT, type WptReport } from './bootstrap.ts'
import { pageOf, type Planned, planTests, TESTS } from './plan.ts'
import { type FileReport, isPassed, isRequired, summarize, toFileReport, toTable } from './table.ts'

const USAGE = 'npm run test:wpt -- --dir DIR [--harness FILE] [--only TEXT] [--json FILE] [--built]'

/** Limit in milliseconds of one file of tests, whose model answers on a busy machine. */
const FILE_TIMEOUT_MS = 300_000

interface Wish {
  folder: string
  harness: string
  only: string | undefined
  json: string | undefined
  isBuilt: boolean
}

function readArguments(): Wish {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      harness: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'string' },
      built: { type: 'boolean', default: false },
    },
  })
  if (values.dir === undefined) throw new Error('--dir names no folder of web platform tests.')
  const folder = resolve(values.dir)
  const harness = resolve(values.harness ?? join(folder, 'resources/testharness.js'))
  if (!existsSync(harness)) {
    const todo = 'Pass a testharness.js as --harness, such as that of wpt-runner 7 on npm.'
    throw new Error(`${harness} does not exist. ${todo}`)
  }
  const { only, json, built } = values
  return { folder, harness, only, json, isBuilt: built }
}

async function main({ folder, harness, only, json, isBuilt }: Wish): Promise<boolean> {
  const planned = planTests(folder).filter(({ name }) => name.includes(only ?? ''))
  if (planned.length === 0) throw new Error(`No test has "${only}" in its name.`)
  if (!isBuilt) buildDemo()
  const pages = Object.fromEntries(
    planned
      .filter(({ skipped }) => skipped === undefined)
      .map((test) => [pathOf(test), pageOf(test, folder, BOOTSTRAP)]),
  )
  const site = await openSite({
    folders: {
      '/package/': 'dist',
      '/ai/': join(folder, 'ai'),
      '/common/': join(folder, 'common'),
      '/images/': join(folder, 'images'),
      '/media/': join(folder, 'media'),
    },
    pages: { ...pages, '/resources/testharness.js': readFileSync(harness, 'utf8') },
  })
  try {
    const reports: FileReport[] = []
    for (const test of planned) {
      const { name, skipped, echoTests } = test
      const report = skipped === undefined ? await runFile(site, test) : undefined
      reports.push(toFileReport({ name, skipped, report, echoTests }))
      console.log(toTable(reports.slice(-1)))
    }
    console.log(summarize(reports))
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(reports, null, 2)}\n`)
    return reports.every(({ report }) => report?.tests.filter(isRequired).every(isPassed) ?? true)
  } finally {
    await site.close()
  }
}

const pathOf = ({ name }: Planned): string => `/${TESTS}/${name.replace(/\.js$/, '.html')}`

/** Runs a file in a profile of its own, so that its model is downloaded anew. */
async function runFile(site: Site, test: Planned): Promise<WptReport> {
  const context = await site.browser.newContext()
  try {
    return await runIn(context, `${site.url}${pathOf(test)}`)
  } finally {
    await context.close()
  }
}

/** Opens the page and waits for its report. To evaluate a script would count as a click of the user. */
async function runIn(context: BrowserContext, url: string): Promise<WptReport> {
  const page = await context.newPage()
  await page.exposeFunction(BLESS, () => page.mouse.click(1, 1))
  const reported = page.waitForEvent('console', {
    predicate: (message) => message.text().startsWith(REPORT),
    timeout: FILE_TIMEOUT_MS,
  })
  const [report] = await Promise.allSettled([reported, page.goto(url)])
  if (report.status === 'fulfilled')
    return JSON.parse(report.value.text().slice(REPORT.length)) as WptReport
  const message = `No result after ${FILE_TIMEOUT_MS / 1000} s.`
  return { status: 2, message, tests: [{ name: 'the whole file', status: 2, message }] }
}

try {
  process.exitCode = (await main(readArguments())) ? 0 : 1
} catch (thrown) {
  console.error(`${thrown instanceof Error ? thrown.message : String(thrown)}\n\n${USAGE}`)
  process.exitCode = 2
}
