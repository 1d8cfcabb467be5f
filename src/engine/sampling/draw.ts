/** Draws a token from the highest scores of a row, or says that more of the row must be known. */

export interface Range {
  /** Above 0. */
  temperature: number
  /** 0: all. */
  topK: number
  topP: number
  minP: number
}

export interface Known {
  /** By falling score. */
  scores: Float32Array
  /** Over the temperature, of the whole row. */
  logSumExp: number
  /** There are no other scores. */
  complete: boolean
}

/** By how much the sums of two devices may differ, as a share. */
const ROUNDING = 1e-5

/** The least and the most that something may be. */
interface Bounds {
  least: number
  most: number
}

/**
 * The rank of the score at the place `at`, in [0, 1), of those in range; `null` where scores that
 * are not known would have a say. Ranges are taken in the order temperature, top-k, top-p, min-p:
 * top-p is a share of what top-k leaves, min-p of the most probable.
 */
export function draw(known: Known, range: Range, at: number): number | null {
  const { temperature, topK, topP, minP } = range
  const best = known.scores[0] as number
  const weights = Float64Array.from(known.scores, (score) => Math.exp((score - best) / temperature))
  const sums = runningSums(weights)
  const total = Math.exp(known.logSumExp - best / temperature)

  let kept = whole(known, sums, total, topK)
  if (topP < 1) kept = nucleus(kept, sums, weights, topP)
  if (minP > 0) kept = probable(kept, sums, weights, minP)
  const least = pass(sums, at * kept.mass.least)
  const most = pass(sums, at * kept.mass.most)
  if (least === most && least < kept.count) return least
  // Rounding alone leads behind the last of those that weigh anything.
  return kept.closed ? reach(sums, kept.mass.most) : null
}

/**
 * The first `count` of the ranks are kept; unless that is `closed`, so are more that are not known.
 */
interface Kept {
  count: number
  closed: boolean
  /** Of all that is kept. */
  mass: Bounds
}

function whole(known: Known, sums: Float64Array, total: number, topK: number): Kept {
  const count = sums.length
  if (topK > 0 && topK <= count) return first(sums, topK)
  if (known.complete) return first(sums, count)
  const least = topK > 0 ? 0 : total * (1 - ROUNDING)
  return open(sums, { least, most: total * (1 + ROUNDING) })
}

const first = (sums: Float64Array, count: number): Kept => {
  const sum = sums[count - 1] as number
  return { count, closed: true, mass: { least: sum, most: sum } }
}

function open(sums: Float64Array, { least, most }: Bounds): Kept {
  const sum = sums.at(-1) as number
  const mass = { least: Math.max(sum, least), most: Math.max(sum, most) }
  return { count: sums.length, closed: false, mass }
}

/** The shortest beginning that reaches this share of the mass. */
function nucleus({ mass }: Kept, sums: Float64Array, weights: Float64Array, share: number): Kept {
  const least = reach(sums, share * mass.least)
  const most = reach(sums, share * mass.most)
  if (least === most && least < sums.length) return first(sums, least + 1)
  // It ends at one of several ranks, by no more over the share than the first of them weighs.
  const rank = Math.min(least, sums.length - 1)
  const over = share * mass.most + (weights[rank] as number)
  return {
    count: rank + 1,
    closed: false,
    mass: {
      least: Math.max(sums[rank] as number, share * mass.least),
      most: Math.min(mass.most, over),
    },
  }
}

/** Those at least this probable relative to the first. */
function probable(kept: Kept, sums: Float64Array, weights: Float64Array, share: number): Kept {
  let count = 1
  while (count < kept.count && (weights[count] as number) >= share) count += 1
  if (count < kept.count) return first(sums, count)
  if (kept.closed) return kept
  return { ...kept, mass: { least: sums[kept.count - 1] as number, most: kept.mass.most } }
}

function runningSums(weights: Float64Array): Float64Array {
  let sum = 0
  return weights.map((weight) => {
    sum += weight
    return sum
  })
}

/** The first rank whose running sum is at least this; their count where none is. */
function reach(sums: Float64Array, wanted: number): number {
  const rank = sums.findIndex((sum) => sum >= wanted)
  return rank === -1 ? sums.length : rank
}

/** The first rank whose running sum is more than this; their count where none is. */
function pass(sums: Float64Array, wanted: number): number {
  const rank = sums.findIndex((sum) => sum > wanted)
  return rank === -1 ? sums.length : rank
}
