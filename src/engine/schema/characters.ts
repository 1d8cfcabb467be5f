/** Sets of code points, as ranges that neither touch nor overlap, ascending. */

export type Characters = readonly (readonly [first: number, last: number])[]

const LAST = 0x10ffff

/** All characters; halves of surrogate pairs are none. */
export const ANY: Characters = [
  [0, 0xd7ff],
  [0xe000, LAST],
]

/** Ranges in any order, joined. */
export function characters(ranges: Characters): Characters {
  const joined: [number, number][] = []
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const previous = joined.at(-1)
    if (previous && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last)
    else joined.push([first, last])
  }
  return joined
}

export function without(set: Characters, taken: Characters): Characters {
  let left = set
  for (const [first, last] of taken) {
    left = left.flatMap(([a, b]) => {
      const parts: [number, number][] = []
      if (a < first) parts.push([a, Math.min(b, first - 1)])
      if (b > last) parts.push([Math.max(a, last + 1), b])
      return b < first || a > last ? [[a, b] as const] : parts
    })
  }
  return left
}

export const not = (set: Characters): Characters => without(ANY, set)

export const both = (a: Characters, b: Characters): Characters => without(a, without(a, b))

export const size = (set: Characters): number =>
  set.reduce((sum, [first, last]) => sum + last - first + 1, 0)

export const one = (character: string): Characters => {
  const code = character.codePointAt(0) ?? 0
  return [[code, code]]
}
