/** Line by line difference of two texts. */
export interface DiffLine {
  kind: 'same' | 'removed' | 'added'
  text: string
}

/** Returns the lines of both texts in order, by their longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, next] = [before.split('\n'), after.split('\n')]
  const common = commonLengths(old, next)
  const lines: DiffLine[] = []
  let [at, to] = [0, 0]
  while (at < old.length || to < next.length) {
    const [removed, added] = [old[at], next[to]]
    if (removed !== undefined && removed === added) {
      lines.push({ kind: 'same', text: removed })
      at += 1
      to += 1
    } else if (
      added === undefined ||
      (removed !== undefined && lengthAt(common, at + 1, to) >= lengthAt(common, at, to + 1))
    ) {
      lines.push({ kind: 'removed', text: removed ?? '' })
      at += 1
    } else {
      lines.push({ kind: 'added', text: added })
      to += 1
    }
  }
  return lines
}

const lengthAt = (common: readonly Uint32Array[], at: number, to: number): number =>
  common[at]?.[to] ?? 0

/** Returns the lengths of the longest common subsequences of all pairs of ends. */
function commonLengths(old: readonly string[], next: readonly string[]): Uint32Array[] {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint32Array(next.length + 1))
  for (let at = old.length - 1; at >= 0; at -= 1) {
    const row = rows[at] ?? new Uint32Array()
    for (let to = next.length - 1; to >= 0; to -= 1) {
      row[to] =
        old[at] === next[to]
          ? 1 + lengthAt(rows, at + 1, to + 1)
          : Math.max(lengthAt(rows, at + 1, to), lengthAt(rows, at, to + 1))
    }
  }
  return rows
}
