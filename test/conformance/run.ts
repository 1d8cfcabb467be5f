/** The conformance run: one browser, one page, one host, every client in turn. */
import { readFileSync } from 'node:fs'
import { build } from 'vite'
import { openSite, serveIn } from '../support/site.ts'
import type { Settings } from './client.ts'
import { judgeExchanges } from './exchanges.ts'
import type { Column, Seen } from './page.ts'
import { SEER } from './seer.ts'
import type { Tokens } from './suite.ts'

export const MODEL = '@inorigin/guide'
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

interface InPage {
  conformance: typeof import('./page.ts')
  server: import('../../src/index.ts').Server
}

export interface RunOptions {
  /** Gets each outcome when it is there. */
  tell?: (column: Column, check: string, outcome: Outcome) => void
  /** Which checks to run. Default: all. */
  wanted?: (column: Column, check: string) => boolean
}

/** Runs the checks, one after the other; needs the built playground. */
export async function runConformance({
  tell = () => {},
  wanted = () => true,
}: RunOptions = {}): Promise<Result[]> {
  const site = await openSite({ pages: { '/conformance.js': await bundlePage() } })
  try {
    const page = await site.open()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(String(error)))
    await serveIn(page, { apiKeys: [KEY] })
    await page.addScriptTag({ url: '/conformance.js' })
    const columns = await page.evaluate(
      ([model, apiKey, tokens, seen]) => {
        const { conformance, server } = globalThis as unknown as InPage
        const { origin, baseURL } = server
        const embedder = '@inorigin/embed'
        const settings: Settings = { origin, baseURL, apiKey, model, embedder, seer: seen }
        return conformance.open(settings, tokens)
      },
      [MODEL, KEY, readTokens(), SEER] as const,
    )
    const results: Result[] = []
    for (const [index, column] of columns.entries()) {
      const outcomes: Result['outcomes'] = {}
      for (const name of column.checks) {
        if (!wanted(column, name)) continue
        const seen = await page.evaluate(
          ([at, check]) => (globalThis as unknown as InPage).conformance.check(at, check),
          [index, name] as const,
        )
        const outcome = judged(name, seen, faults.splice(0))
        outcomes[name] = outcome
        tell(column, name, outcome)
      }
      results.push({ ...column, outcomes })
    }
    return results
  } finally {
    await site.close()
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

/** A script that sets `conformance`, as an app's bundler would make it. */
async function bundlePage(): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      minify: false,
      lib: {
        entry: new URL('./page.ts', import.meta.url).pathname,
        formats: ['iife'],
        name: 'conformance',
        fileName: 'conformance',
      },
    },
  })
  const [first] = Array.isArray(result) ? result : [result]
  if (!first || !('output' in first)) throw new Error('Vite gave no bundle of the clients.')
  return first.output[0].code
}

/** The tokens by which the model is driven, from its own files. */
function readTokens(): Tokens {
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
