/** The table of a run. */
import type { Row } from './measure.ts'
import { type Effort, MORE, nameOf, STREAMS } from './plan.ts'

/** Returns the lines of the table, of which the first has the names of the columns. */
export function toTable(rows: readonly Row[], { contexts, history }: Effort): string[][] {
  return [
    [
      'side',
      'model',
      ...contexts.map((context) => `decode at ${context}`),
      ...contexts.map((context) => `first token of ${context}`),
      `turn 1 of ${history}, turn 2 of ${MORE} more`,
      `${STREAMS} at once over one by one`,
      'dispatches per token',
      'load, second load',
    ],
    ...rows.map((row) => toLine(row, contexts)),
  ]
}

const NOTHING = '-'

function toLine(row: Row, contexts: readonly number[]): string[] {
  const { model, format, decode, turns, streams, loads } = row
  const dispatches = contexts.flatMap((context) => decode[context]?.dispatches || [])
  return [
    nameOf(row),
    `${model} ${format}`,
    ...contexts.map((context) => withUnit(decode[context]?.rate, 'tokens/s', 1)),
    ...contexts.map((context) => withUnit(decode[context]?.first, 'ms')),
    turns ? turns.map((each) => withUnit(each, 'ms')).join(', ') : NOTHING,
    streams ? `${streams.ratio.toFixed(2)} (${withUnit(streams.rate, 'tokens/s', 1)})` : NOTHING,
    dispatches.length > 0 ? dispatches.map((each) => each.toFixed(0)).join(', ') : NOTHING,
    loads ? loads.map((each) => withUnit(each / 1_000, 's', 1)).join(', ') : NOTHING,
  ]
}

const withUnit = (value: number | undefined, unit: string, digits = 0): string =>
  value === undefined ? NOTHING : `${value.toFixed(digits)} ${unit}`
