/** Sets of code points, as ascending ranges that neither touch nor overlap. */

export type Characters = readonly (readonly [first: number, last: number])[]

const LAST = 0x10ffff

/** Set of all characters. Halves of surrogate pairs are not characters. */
export const ANY: Characters = [
  [0, 0xd7ff],
  [0xe000, LAST],
]

/** Returns the union of ranges in any order. */
export function characters(ranges: Characters): Characters {
  const joined: [number, number][] = []
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const previous = joined.at(-1)
    if (previous && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last)
    else joined.push([first, last])
  }
  return joined
}

export function difference(set: Characters, taken: Characters): Characters {
  const left: [number, number][] = []
  let at = 0
  for (const [first, last] of set) {
    let from = first
    while ((taken[at]?.[1] ?? Infinity) < from) at += 1
    for (let next = at; from <= last; next++) {
      const [start, end] = taken[next] ?? [Infinity, Infinity]
      if (from < start) left.push([from, Math.min(last, start - 1)])
      from = Math.max(from, end + 1)
    }
  }
  return left
}

export const complement = (set: Characters): Characters => difference(ANY, set)

export const intersection = (a: Characters, b: Characters): Characters =>
  difference(a, difference(a, b))

export const size = (set: Characters): number =>
  set.reduce((sum, [first, last]) => sum + last - first + 1, 0)

export const one = (character: string): Characters => {
  const code = character.codePointAt(0) ?? 0
  return [[code, code]]
}

/** Returns `true` if the set contains the code point. Takes logarithmic time. */
export function contains(set: Characters, code: number): boolean {
  let [low, high] = [0, set.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((set[middle]?.[1] ?? Infinity) < code) low = middle + 1
    else high = middle
  }
  return (set[low]?.[0] ?? Infinity) <= code
}
