/** Parses the `Range` header of a request for a resource (RFC 9110, section 14). */

/** Positions of the first and the last byte. */
export type Span = readonly [first: number, last: number]

/** Largest number of ranges. A request for more gets the whole resource. */
const MOST = 64

/**
 * Returns the satisfiable ranges of a `Range` header, an empty array if none is satisfiable.
 * Returns `undefined` for the whole resource, also when the header is invalid. Ranges that overlap
 * are merged.
 */
export function spansIn(header: string | null, size: number): Span[] | undefined {
  const [, list] = /^\s*bytes\s*=(.*)$/i.exec(header ?? '') ?? []
  const asked =
    list
      ?.split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '') ?? []
  if (asked.length === 0 || asked.length > MOST) return undefined
  const spans: Span[] = []
  for (const one of asked) {
    const [, from = '', to = ''] = /^(\d*)\s*-\s*(\d*)$/.exec(one) ?? []
    if (from === '' && to === '') return undefined
    if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
    const span: Span =
      from === ''
        ? [Math.max(0, size - Number(to)), size - 1]
        : [Number(from), to === '' ? size - 1 : Math.min(Number(to), size - 1)]
    if (span[0] <= span[1]) spans.push(span)
  }
  return overlap(spans) ? merged(spans) : spans
}

const byStart = (one: Span, other: Span): number => one[0] - other[0]

function overlap(spans: readonly Span[]): boolean {
  const sorted = spans.toSorted(byStart)
  return sorted.some(([first], index) => index > 0 && first <= (sorted[index - 1]?.[1] ?? -1))
}

function merged(spans: readonly Span[]): Span[] {
  const joined: Span[] = []
  for (const span of spans.toSorted(byStart)) {
    const before = joined.at(-1)
    if (!before || span[0] > before[1]) joined.push(span)
    else joined[joined.length - 1] = [before[0], Math.max(before[1], span[1])]
  }
  return joined
}
