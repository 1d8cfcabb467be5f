/** The script in the page: every client, and what it is asked to do there. */
import type { Kind, Settings } from './client.ts'
import { aiAnthropic, aiChat, aiCompatible, aiResponses } from './clients/ai.ts'
import { anthropic0, anthropic1 } from './clients/anthropic.ts'
import { langchainAnthropic, langchainOpenai, langchainResponses } from './clients/langchain.ts'
import { openaiChat } from './clients/openai-chat.ts'
import { openaiResponses } from './clients/openai-responses.ts'
import { predictorChecks } from './clients/predictor.ts'
import { FEATURES } from './features.ts'
import { type Check, checksOf, type Tokens } from './suite.ts'
import { createTap, type Exchange } from './tap.ts'

export interface Seen {
  outcome: 'pass' | 'refused' | 'failed'
  /** Why it was refused or failed; empty for what passed. */
  reason: string
  exchanges: Exchange[]
}

/** A column of the page; each table has several. */
export interface Column {
  table: string
  title: string
  packages: readonly string[]
  note?: string
  checks: string[]
}

/** A kind of client without the type of its messages, which are its own affair. */
const client = <Own>(kind: Kind<Own>) => ({
  title: kind.title,
  packages: kind.packages,
  note: kind.note,
  checks: (settings: Settings, tokens: Tokens) => checksOf(kind, settings, tap.drive, tokens),
})

const tap = createTap(globalThis.fetch.bind(globalThis))
globalThis.fetch = tap.fetch
const TABLES = {
  'OpenAI SDK': [client(openaiChat), client(openaiResponses)],
  'Anthropic SDK': [client(anthropic1), client(anthropic0)],
  'AI SDK': [client(aiResponses), client(aiChat), client(aiCompatible), client(aiAnthropic)],
  LangChain: [client(langchainOpenai), client(langchainResponses), client(langchainAnthropic)],
}
export const PREDICTORS = 'Predictor client'

/** Longer than any check takes on a busy machine. */
const PATIENCE = 60_000

let runs: Array<Record<string, Check>> = []

/** Makes the clients; says what there is to check, in the order of the page. */
export function open(settings: Settings, tokens: Tokens): Column[] {
  runs = []
  const columnOf = (run: Record<string, Check>, column: Omit<Column, 'checks'>): Column => {
    runs.push(run)
    return { ...column, checks: Object.keys({ ...FEATURES, ...run }).filter((name) => name in run) }
  }
  const clients = Object.entries(TABLES).flatMap(([table, ours]) =>
    ours.map(({ checks, ...words }) => columnOf(checks(settings, tokens), { table, ...words })),
  )
  const words = { table: PREDICTORS, title: 'requests', packages: [] }
  return [...clients, columnOf(predictorChecks(settings), words)]
}

/** Runs one check. */
export async function check(column: number, name: string): Promise<Seen> {
  tap.drive(null)
  tap.take()
  const run = runs[column]?.[name]
  if (!run) throw new Error(`There is no check ${name} in column ${column}.`)
  try {
    const reason = await patiently(run())
    const outcome = reason === undefined ? 'pass' : 'refused'
    return { outcome, reason: reason ?? '', exchanges: await tap.settled() }
  } catch (thrown) {
    return { outcome: 'failed', reason: String(thrown), exchanges: tap.take() }
  }
}

async function patiently<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it takes too long')), PATIENCE)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
