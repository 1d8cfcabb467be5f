/** The results of a soak, as it prints them. */
import { median, printTable } from '../bench/figure.ts'
import type { MemorySample } from './memory.ts'
import type { Outcome, Verdict } from './outcome.ts'
import type { FaultName } from './faults.ts'

export interface Result extends Outcome {
  index: number
  fault: FaultName
  memory: MemorySample
}

const GOOD: readonly Verdict[] = ['same', 'prefix', 'allowed error', 'passed by']
const VERDICTS: readonly Verdict[] = [...GOOD, 'wrong', 'hang', 'failed']

export const isGood = ({ verdict }: Outcome): boolean => GOOD.includes(verdict)

/** Prints a row for each fault: how its answers ended, and how long they took to go on. */
export function printResults(results: readonly Result[]): void {
  const rows = [...new Set(results.map(({ fault }) => fault))].sort()
  printTable([
    ['fault', 'streams', ...VERDICTS, 'recovered', 'median ms', 'p95 ms', 'longest ms'],
    ...rows.map((fault) =>
      toRow(
        fault,
        results.filter((one) => one.fault === fault),
      ),
    ),
    toRow('all', results),
  ])
}

function toRow(name: string, results: readonly Result[]): string[] {
  const times = results.flatMap(({ recoveryMs }) => recoveryMs ?? []).sort((a, b) => a - b)
  const time = (value: number | undefined) => (value === undefined ? '' : value.toFixed(0))
  return [
    name,
    String(results.length),
    ...VERDICTS.map((verdict) => String(results.filter((one) => one.verdict === verdict).length)),
    String(times.length),
    times.length > 0 ? time(median(times)) : '',
    time(times[Math.ceil(times.length * 0.95) - 1]),
    time(times.at(-1)),
  ]
}

/** Prints the memory in the first and the last quarter of the steps. */
export function printMemory(results: readonly Result[]): void {
  const samples = results.map(({ memory }) => memory)
  const quarter = Math.max(1, Math.floor(samples.length / 4))
  const mean = (kind: keyof MemorySample, part: readonly MemorySample[]): string => {
    const numbers = part.flatMap((sample) => sample[kind] ?? [])
    if (numbers.length === 0) return 'unknown'
    return (numbers.reduce((sum, bytes) => sum + bytes, 0) / numbers.length / 2 ** 20).toFixed(1)
  }
  const row = (name: string, kind: keyof MemorySample) => [
    name,
    mean(kind, samples.slice(0, quarter)),
    mean(kind, samples.slice(-quarter)),
  ]
  printTable([
    ['memory in MiB', 'first quarter', 'last quarter'],
    row('browser process', 'browser'),
    row('renderers', 'renderers'),
    row('heap of a page', 'page'),
  ])
}
