/** The table that `npm run test:hub` prints for `docs/choosing-a-model.md`. */
import { bytes, duration, rate } from '../../demo/format.ts'
import type { Measurements } from '../../demo/bench/result.ts'
import type { Tag } from '../../src/index.ts'
import type { CheckResults } from './page.ts'

/** What became of one model. */
export interface ModelReport {
  tag: Tag
  /** Absent if the model failed before. */
  measurements?: Measurements
  checks?: CheckResults
  /** Peak of the memory of the browser's page and GPU processes in bytes; `null` if not known. */
  memoryBytes?: number | null
  /** Error that ended the run of the model. */
  error?: string
}

/** Returns `true` if the model ran and passed its checks. */
export function isGood({ checks, error }: ModelReport): boolean {
  if (error !== undefined || !checks) return false
  return Object.values(checks).every((result) => result === 'ok' || result === null)
}

const HEAD = [
  'model',
  'implementation',
  'size',
  'load',
  'first token',
  'prefill',
  'decode',
  'memory',
  'sentence',
  'tool',
  'schema',
]

/** Returns the reports as a Markdown table. */
export function toMarkdown(reports: readonly ModelReport[]): string {
  const rows = [HEAD, HEAD.map(() => '---'), ...reports.map(toCells)]
  return rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

function toCells({ tag, measurements, checks, memoryBytes, error }: ModelReport): string[] {
  if (!measurements) {
    const rest = HEAD.slice(2).map(() => '')
    return [tag, toCell(`failed: ${error ?? 'it was not measured'}`), ...rest]
  }
  const { implementation, load, firstToken, prefillTokensPerSecond, decode } = measurements
  const { tokensPerSecond } = decode.short
  return [
    tag,
    implementation.id,
    bytes(implementation.bytes),
    duration(load.storedMs),
    duration(firstToken.coldMs),
    `${rate(prefillTokensPerSecond)} tokens/s`,
    tokensPerSecond === null ? '-' : `${rate(tokensPerSecond)} tokens/s`,
    memoryBytes ? bytes(memoryBytes) : '-',
    ...[checks?.sentence, checks?.tool, checks?.schema].map((result) => toCell(result ?? '-')),
  ]
}

const toCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
