/** Second visits: what passes from a navigation to the first token when everything is stored. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromiumArgs, ensureChromium } from '../setup/chromium.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'
import { atMost, median, printTable, reported, type Figure } from './figure.ts'
import { buildScripts } from './scripts.ts'
import type { OwnTimes, Report } from './startup-times.ts'

const ROOT = join(import.meta.dirname, '../..')
const DEMO = join(ROOT, 'dist-demo')
const OUT = join(ROOT, 'node_modules/.cache/inorigin-bench/startup')
/** Second visits of each kind. */
const VISITS = 7
/** Milliseconds until a browser that was just launched is idle. */
const LAUNCH_MS = 2_000
/** Milliseconds that a browser has to write its profile and end. */
const CLOSE_MS = 10_000
/** Milliseconds after which a visit has failed. */
const VISIT_TIMEOUT_MS = 120_000
const BAR_MS = 1_200

const PAGE = `<!doctype html><meta charset="utf-8"><title>startup</title>
<script type="module">
  import { serve } from '/inorigin/index.js'
  import { visit } from '/bench/page.js'
  await visit(serve)
</script>`

const BARE_PAGE = `<!doctype html><meta charset="utf-8"><title>bare</title>
<script type="module">
  import { visitBare } from '/bare/bare.js'
  await visitBare('/inorigin/models/guide/onnx/model.onnx', '/inorigin/ort/')
</script>`

/**
 * Measures second visits to a plain page, to one that is isolated and so has threads, and to one that
 * uses the runtime alone, which shows what the runtime takes by itself.
 */
export async function measureStartup(): Promise<Figure[]> {
  // Each into a folder of its own, so that they share no chunk.
  await buildScripts(join(OUT, 'page'), { page: 'startup-page.ts' })
  await buildScripts(join(OUT, 'worker'), { worker: 'startup-worker.ts' })
  await buildScripts(join(OUT, 'bare'), { bare: 'startup-bare.ts' })
  const reporting = readFileSync(join(OUT, 'worker/worker.js'), 'utf8')
  const worker = (name: string) =>
    `${readFileSync(join(DEMO, 'inorigin', name), 'utf8')}\n;(() => {\n${reporting}\n})()\n`
  const server = await serveStatic({
    folders: { '/bench/': join(OUT, 'page'), '/bare/': join(OUT, 'bare'), '/': DEMO },
    pages: {
      '/startup.html': PAGE,
      '/bare.html': BARE_PAGE,
      '/inorigin/worker.js': worker('worker.js'),
      '/inorigin/model-worker.js': worker('model-worker.js'),
    },
    // As `npm start` and many static hosts do: the server is asked before a cached file is used.
    headers: { 'cache-control': 'no-cache' },
    hasEtags: true,
  })
  try {
    const plain = await measureVisits(server, '/startup.html')
    const isolated = await measureVisits(server, '/startup.html', '&isolate')
    const bare = medianOf(await measureVisits(server, '/bare.html'))
    printPhases(plain, isolated)
    return [
      toFigure('second_visit_ms', plain, 'one thread'),
      toFigure('second_visit_isolated_ms', isolated, 'isolated page'),
      reported('second_visit_bare_ms', bare, 'the same with the runtime alone, one thread'),
      reported(
        'second_visit_vs_bare',
        medianOf(plain) / bare,
        'everything over the runtime alone, one thread',
      ),
    ]
  } finally {
    await server.close()
  }
}

/** Times of a visit by the name of the thread, in milliseconds since the navigation. */
type Timeline = Record<
  'page' | 'host' | 'model',
  Pick<OwnTimes, 'marks' | 'fetches'> & { start: number }
>

const firstToken = ({ threads: [page] }: Report): number => page?.marks['first token'] ?? NaN
const medianOf = (visits: readonly Report[]): number => median(visits.map(firstToken))

/** Visits once to store everything, and then as often as is measured, each with a new browser. */
async function measureVisits(server: StaticServer, page: string, query = ''): Promise<Report[]> {
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-startup-'))
  try {
    await visit(server, profile, `${page}?first${query}`)
    const visits: Report[] = []
    for (let count = 0; count < VISITS; count += 1)
      visits.push(await visit(server, profile, `${page}?again${query}`))
    return visits
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/**
 * Opens the page in a tab of a browser that was just launched, without a debugger: it would hold up
 * every thread that the page starts.
 */
async function visit(server: StaticServer, profile: string, path: string): Promise<Report> {
  const browser = await launch(profile)
  try {
    await sleep(LAUNCH_MS)
    server.reports.length = 0
    await fetch(`${browser.url}/json/new?${encodeURIComponent(server.url + path)}`, {
      method: 'PUT',
    })
    const deadline = Date.now() + VISIT_TIMEOUT_MS
    while (server.reports.length === 0 && Date.now() < deadline) await sleep(100)
    const report = JSON.parse(server.reports[0] ?? '{"error":"timeout"}') as Report
    if (report.error !== undefined) throw new Error(`${path}: ${report.error}`)
    return report
  } finally {
    await browser.close()
  }
}

interface LaunchedBrowser {
  /** Address at which it opens tabs. */
  url: string
  close(): Promise<void>
}

async function launch(profile: string): Promise<LaunchedBrowser> {
  const args = ['--headless', '--remote-debugging-port=0', `--user-data-dir=${profile}`]
  // The command may be a script, so all its processes are ended as a group.
  const browser = spawn(ensureChromium(), [...chromiumArgs(), ...args, 'about:blank'], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const group = -(browser.pid ?? NaN)
  const close = async (): Promise<void> => {
    const deadline = Date.now() + CLOSE_MS
    // The last process of the group still writes to the profile.
    let isAlive = signal(group, 'SIGTERM')
    while (isAlive && Date.now() < deadline) {
      await sleep(20)
      isAlive = signal(group, 0)
    }
    if (isAlive) signal(group, 'SIGKILL')
  }
  for await (const line of createInterface({ input: browser.stderr })) {
    const address = /DevTools listening on ws:\/\/([^/]+)/.exec(line)?.[1]
    if (address === undefined) continue
    browser.stderr.resume()
    return { url: `http://${address}`, close }
  }
  throw new Error('Chromium ended before it listened.')
}

/** Returns `false` if there is no such process any more. */
function signal(pid: number, what: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, what)
  } catch {
    return false
  }
}

function toTimeline({ threads }: Report): Timeline {
  const [page, ...workers] = threads
  const find = (name: string) => workers.find((worker) => worker.name.startsWith(name))
  const from = (thread: OwnTimes | undefined) => {
    if (!page || !thread) throw new Error('A thread did not report.')
    const start = thread.origin - page.origin
    const at = (time: number) => start + time
    return {
      start,
      marks: mapValues(thread.marks, at),
      fetches: mapValues(thread.fetches, ([begin, end]): [number, number] => [at(begin), at(end)]),
    }
  }
  return { page: from(page), host: from(find('inorigin host')), model: from(find('inorigin @')) }
}

function mapValues<T>(record: Record<string, T>, map: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))
}

function toFigure(name: string, visits: readonly Report[], what: string): Figure {
  const note = `navigation to first token, median of ${visits.length}, ${what}`
  return atMost(name, medianOf(visits), BAR_MS, note)
}

/** Milliseconds from the navigation at which a phase begins and ends. */
type Phase = readonly [from: number | undefined, to: number | undefined]

/** Phases in the order of their ends. Those of the model worker overlap. */
function phasesOf({ page, host, model }: Timeline): Record<string, Phase> {
  const { script, served } = page.marks
  const controlled = page.marks['inorigin:controlled']
  const catalog = host.fetches['catalog.json']
  const wasm = model.fetches['ort-wasm-simd-threaded.wasm']
  const tokenizer = model.marks['inorigin:tokenizer']
  const runtime = model.marks['inorigin:runtime']
  const session = model.marks['inorigin:session']
  const warm = model.marks['inorigin:warm']
  return {
    'page: document and script': [0, script],
    'page: service worker controls it': [script, controlled],
    'page: election, start of the host worker': [controlled, host.start],
    'host worker: its script': [host.start, catalog?.[0]],
    'host worker: catalog': catalog ?? [undefined, undefined],
    'page: serve() resolves': [controlled, served],
    'host worker: request, choice, database': [served, model.start],
    'model worker: its script, tokenizer': [model.start, tokenizer],
    'model worker: wasm fetched': wasm ?? [undefined, undefined],
    'model worker: wasm compiled, started': [wasm?.[0], runtime],
    'model worker: session': [runtime, session],
    'model worker: warm-up': [session, warm],
    'prompt and first token': [warm ?? session, page.marks['first token']],
  }
}

function printPhases(plain: readonly Report[], isolated: readonly Report[]): void {
  const columns = [plain, isolated].map((visits) => visits.map(toTimeline).map(phasesOf))
  const names = Object.keys(columns[0]?.[0] ?? {})
  const cells = (name: string) =>
    columns.flatMap((visits) => {
      const [from, to] = [0, 1].map((end) => median(visits.map((one) => one[name]?.[end] ?? NaN)))
      return [`${from?.toFixed(0)} - ${to?.toFixed(0)}`, `${((to ?? 0) - (from ?? 0)).toFixed(0)}`]
    })
  printTable([
    ['second visit, ms (medians)', 'from - to', 'takes', 'isolated: from - to', 'takes'],
    ...names.map((name) => [name, ...cells(name)]),
  ])
}
