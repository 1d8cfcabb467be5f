/** Measured figures and how they are printed. */

/** A measured figure. */
export interface Figure {
  name: string
  value: number
  /** The figure that is wanted; empty if there is none. */
  bar: string
  met: boolean
  note: string
}

export const atLeast = (name: string, value: number, bar: number, note: string): Figure => ({
  name,
  value,
  bar: `>= ${bar}`,
  met: value >= bar,
  note,
})

export const atMost = (name: string, value: number, bar: number, note: string): Figure => ({
  name,
  value,
  bar: `<= ${bar}`,
  met: value <= bar,
  note,
})

/** A figure that has no bar. */
export const reported = (name: string, value: number, note: string): Figure => ({
  name,
  value,
  bar: '',
  met: true,
  note,
})

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low, high] = [sorted[middle - 1] ?? 0, sorted[middle] ?? 0]
  return sorted.length % 2 === 1 ? high : (low + high) / 2
}

export function printFigures(figures: readonly Figure[]): void {
  printTable(
    figures.map(({ name, value, bar, met, note }) => [
      name,
      value.toFixed(2),
      bar,
      bar === '' ? '' : met ? 'met' : 'NOT MET',
      note,
    ]),
  )
}

export function printTable(rows: readonly (readonly string[])[]): void {
  const columns = Math.max(...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  for (const row of rows) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}
