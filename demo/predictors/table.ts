/** Numbers and texts of a tensor as a table. */
import { element } from '../dom.ts'

const MAX_ROWS = 20
const MAX_COLUMNS = 12

/**
 * Creates a table. The last dimension is its columns, all others are its rows. A table that is too
 * large is cut, and its caption says so.
 */
export function createTable(
  name: string,
  values: readonly unknown[],
  shape: readonly number[],
): HTMLTableElement {
  const table = element('table', '')
  // A single list is read downward.
  const isList = shape.length <= 1
  const columns = isList ? 1 : (shape.at(-1) ?? 1)
  const rows = columns === 0 ? 0 : values.length / columns
  const size = shape.length === 0 ? 'one value' : shape.join(' × ')
  const isCut = rows > MAX_ROWS || columns > MAX_COLUMNS
  table.createCaption().textContent = isCut ? `${size}, the first are shown` : size
  table.ariaLabel = name
  const body = table.createTBody()
  for (let row = 0; row < Math.min(rows, MAX_ROWS); row += 1) {
    const line = body.insertRow()
    const head = element('th', '', String(row))
    head.scope = 'row'
    line.append(head)
    for (let column = 0; column < Math.min(columns, MAX_COLUMNS); column += 1) {
      line.insertCell().textContent = format(values[row * columns + column])
    }
  }
  return table
}

function format(value: unknown): string {
  return typeof value === 'number' && !Number.isInteger(value)
    ? String(Number(value.toPrecision(5)))
    : String(value)
}
