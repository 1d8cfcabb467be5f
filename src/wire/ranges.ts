/** Parses the `Range` header of a request for a resource (RFC 9110, section 14). */

/** Positions of the first and the last byte. */
export type ByteRange = readonly [first: number, last: number]

/** Largest number of ranges. A request for more gets the whole resource. */
const MAX_RANGES = 64

/**
 * Returns the satisfiable ranges of a `Range` header, an empty array if none is satisfiable.
 * Returns `undefined` for the whole resource, also when the header is invalid. Ranges that overlap
 * are merged.
 */
export function parseRangeHeader(header: string | null, size: number): ByteRange[] | undefined {
  const [, list] = /^\s*bytes\s*=(.*)$/i.exec(header ?? '') ?? []
  const requested =
    list
      ?.split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '') ?? []
  if (requested.length === 0 || requested.length > MAX_RANGES) return undefined
  const ranges: ByteRange[] = []
  for (const one of requested) {
    const [, from = '', to = ''] = /^(\d*)\s*-\s*(\d*)$/.exec(one) ?? []
    if (from === '' && to === '') return undefined
    if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
    const range: ByteRange =
      from === ''
        ? [Math.max(0, size - Number(to)), size - 1]
        : [Number(from), to === '' ? size - 1 : Math.min(Number(to), size - 1)]
    if (range[0] <= range[1]) ranges.push(range)
  }
  // Ranges that do not overlap keep their order.
  const merged = mergeRanges(ranges)
  return merged.length < ranges.length ? merged : ranges
}

function mergeRanges(ranges: readonly ByteRange[]): ByteRange[] {
  const joined: ByteRange[] = []
  for (const range of ranges.toSorted((one, other) => one[0] - other[0])) {
    const before = joined.at(-1)
    if (!before || range[0] > before[1]) joined.push(range)
    else joined[joined.length - 1] = [before[0], Math.max(before[1], range[1])]
  }
  return joined
}
