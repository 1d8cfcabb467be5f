/** The highest scores of a row, without putting all of it in order. */
import { bitsOf, keyOf } from './key.ts'

export interface Ranked {
  ids: Uint32Array
  scores: Float32Array
}

/** A key and an id are one number, to be sorted as such: 32 and 21 of the 53 bits it has. */
const IDS = 2 ** 21
const entryOf = (key: number, id: number): number => key * IDS + (IDS - 1 - id)

/** So many are sooner put in order than counted by bins. */
const FEW = 1024

/**
 * The `count` highest scores, or as many as there are: by falling score, the lower id first where
 * two are equal, and before all others what is not a number. At most 2,097,152 scores.
 */
export function highest(scores: Float32Array, count: number): Ranked {
  if (count === 1) return single(scores)
  const bits = new Uint32Array(scores.buffer, scores.byteOffset, scores.length)
  const wanted = Math.min(count, bits.length)
  const { edge, size } = edgeOf(bits, wanted)
  const entries = new Float64Array(size)
  let next = 0
  for (let id = 0; id < bits.length; id += 1) {
    const key = keyOf(bits[id] as number)
    if (key >= edge) entries[next++] = entryOf(key, id)
  }
  return unpack(entries.sort().subarray(size - wanted))
}

/** A key that at least `wanted` reach, and how many do: the first of a bin of 2^16 keys. */
function edgeOf(bits: Uint32Array, wanted: number): { edge: number; size: number } {
  if (bits.length <= FEW) return { edge: 0, size: bits.length }
  const bins = new Uint32Array(2 ** 16)
  for (let id = 0; id < bits.length; id += 1) {
    const bin = keyOf(bits[id] as number) >>> 16
    bins[bin] = (bins[bin] as number) + 1
  }
  let bin = bins.length
  let size = 0
  while (size < wanted) size += bins[--bin] as number
  return { edge: bin * 2 ** 16, size }
}

/** The `count` highest of scores that are given by their keys. */
export function inOrder(keys: Uint32Array, ids: Uint32Array, count: number): Ranked {
  const entries = Float64Array.from(keys, (key, index) => entryOf(key, ids[index] as number))
  return unpack(entries.sort().subarray(keys.length - count))
}

/** From the last to the first. */
function unpack(entries: Float64Array): Ranked {
  const ids = new Uint32Array(entries.length)
  const bits = new Uint32Array(entries.length)
  entries.forEach((entry, index) => {
    const rank = entries.length - 1 - index
    ids[rank] = IDS - 1 - (entry % IDS)
    bits[rank] = bitsOf(Math.floor(entry / IDS))
  })
  return { ids, scores: new Float32Array(bits.buffer) }
}

function single(scores: Float32Array): Ranked {
  let top = 0
  let max = Number.NEGATIVE_INFINITY
  for (let id = 0; id < scores.length; id += 1) {
    const score = scores[id] as number
    if (score <= max) continue
    top = id
    max = score
    if (Number.isNaN(score)) break
  }
  // Adding 0 makes the zero positive.
  return { ids: Uint32Array.of(top), scores: Float32Array.of(max + 0) }
}

/**
 * The logarithm of the sum of the exponentials of all scores over `temperature`, of which `max` is
 * the highest; `max` itself where that is not finite.
 */
export function logSumExp(scores: Float32Array, max: number, temperature: number): number {
  if (!Number.isFinite(max)) return max
  let sum = 0
  for (let id = 0; id < scores.length; id += 1)
    sum += Math.exp(((scores[id] as number) - max) / temperature)
  return max / temperature + Math.log(sum)
}
