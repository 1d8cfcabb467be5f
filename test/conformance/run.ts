/** The conformance run: one browser, one page, one host, every client in turn. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundleScript } from '../support/sdks.ts'
import { openSite, serveIn } from '../support/site.ts'
import type { Settings } from './client.ts'
import { judgeExchanges } from './exchanges.ts'
import type { Column, Seen } from './page.ts'
import { SEER } from './seer.ts'
import type { Tokens } from './suite.ts'

export const MODEL = '@inorigin/guide'
export const EMBEDDER = '@inorigin/embed'
const KEY = 'conformance'

/** What became of one check. */
export interface Outcome {
  outcome: Seen['outcome']
  reason: string
}

/** A column with what was seen of each of its checks. */
export interface Result extends Column {
  outcomes: Record<string, Outcome>
}

/** A page with all clients. */
export interface Stage {
  columns: Column[]
  /** Runs one check of the column with that index. */
  check(index: number, name: string): Promise<Outcome>
  close(): Promise<void>
}

interface InPage {
  conformance: typeof import('./page.ts')
  server: import('../../src/index.ts').Server
}

/**
 * Installs the current majors of the clients and returns their folder. Some of them need Node 22, but
 * here they only run in the browser.
 */
export function installCurrent(): string {
  const folder = join(import.meta.dirname, 'current')
  if (!existsSync(join(folder, 'node_modules/openai'))) {
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder]
    execFileSync('npm', args, { stdio: 'inherit', shell: process.platform === 'win32' })
  }
  return folder
}

/**
 * Opens the page; needs the built playground. `packages` is a folder with other versions of the
 * clients. Default: those of the repository.
 */
export async function openStage(packages?: string): Promise<Stage> {
  const script = await bundleScript('../conformance/page.ts', 'conformance', packages)
  const site = await openSite({ pages: { '/conformance.js': script } })
  const page = await site.open()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  await serveIn(page, { apiKeys: [KEY] })
  await page.addScriptTag({ url: '/conformance.js' })
  const columns = await page.evaluate(
    ([model, embedder, apiKey, tokens, seer]) => {
      const { conformance, server } = globalThis as unknown as InPage
      const { origin, baseURL } = server
      const settings: Settings = { origin, baseURL, apiKey, model, embedder, seer }
      return conformance.open(settings, tokens)
    },
    [MODEL, EMBEDDER, KEY, readTokens(), SEER] as const,
  )
  return {
    columns,
    async check(index, name) {
      const seen = await page.evaluate(
        ([at, check]) => (globalThis as unknown as InPage).conformance.check(at, check),
        [index, name] as const,
      )
      return judged(name, seen, faults.splice(0))
    },
    close: site.close,
  }
}

/** Runs the wanted checks, one after the other. `onOutcome` gets each outcome when it is there. */
export async function runConformance(
  wanted: (column: Column, check: string) => boolean,
  onOutcome: (column: Column, check: string, outcome: Outcome) => void,
  packages?: string,
): Promise<Result[]> {
  const stage = await openStage(packages)
  try {
    const results: Result[] = []
    for (const [index, column] of stage.columns.entries()) {
      const outcomes: Result['outcomes'] = {}
      for (const name of column.checks) {
        if (!wanted(column, name)) continue
        outcomes[name] = await stage.check(index, name)
        onOutcome(column, name, outcomes[name])
      }
      results.push({ ...column, outcomes })
    }
    return results
  } finally {
    await stage.close()
  }
}

/** A check has passed when what the client says is right, and what went over the wire as well. */
function judged(name: string, { outcome, reason, exchanges }: Seen, faults: string[]): Outcome {
  if (outcome === 'failed') return { outcome, reason }
  try {
    judgeExchanges(name, outcome, exchanges)
    if (faults.length > 0) throw new Error(`thrown aside: ${faults.join('; ')}`)
    return { outcome, reason }
  } catch (thrown) {
    return { outcome: 'failed', reason: String(thrown) }
  }
}

/** The tokens by which the model is driven, from its own files. */
export function readTokens(): Tokens {
  const read = (name: string): unknown =>
    JSON.parse(readFileSync(new URL(`../../demo/models/guide/${name}`, import.meta.url), 'utf8'))
  const { eos_token_id: end } = read('generation_config.json') as { eos_token_id: number[] }
  const { model, added_tokens: added } = read('tokenizer.json') as {
    model: { vocab: Record<string, number> }
    added_tokens: Array<{ id: number; content: string }>
  }
  const idOf = (text: string): number => {
    const id = added.find(({ content }) => content === text)?.id ?? model.vocab[text]
    if (id === undefined) throw new Error(`The guide has no token ${text}.`)
    return id
  }
  const braces = [idOf('{'), idOf('}')]
  return { end, braces, thoughtEnd: idOf('</think>'), callStart: idOf('<tool_call>') }
}
