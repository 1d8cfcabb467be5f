/** Finds the highest logits of a row without sorting the whole row. */

/** Logits in descending order, with their token ids. */
interface RankedLogits {
  ids: Uint32Array
  scores: Float32Array
}

/** Sort entries combine a key (32 bits) and an id (21 bits) in the 53 bits of a number. */
const ID_RANGE = 2 ** 21
const packEntry = (key: number, id: number): number => key * ID_RANGE + (ID_RANGE - 1 - id)

/** Number of logits up to which all are sorted instead of counted in bins; a guess. */
const MAX_SORTED_LOGITS = 1024

/**
 * Returns the `count` highest logits, or all if there are fewer, in descending order. Of equal
 * logits, the lower id comes first. NaN precedes all others. The row may have at most 2,097,152
 * logits.
 */
export function topLogits(scores: Float32Array, count: number): RankedLogits {
  if (count === 1) return topLogit(scores)
  const bits = new Uint32Array(scores.buffer, scores.byteOffset, scores.length)
  const wanted = Math.min(count, bits.length)
  const { edge, size } = findEdge(bits, wanted)
  const entries = new Float64Array(size)
  let next = 0
  for (let id = 0; id < bits.length; id += 1) {
    const key = logitToKey(bits[id] as number)
    if (key >= edge) entries[next++] = packEntry(key, id)
  }
  return unpack(entries.sort().subarray(size - wanted))
}

/** Returns the first key of a bin that at least `wanted` logits reach, and how many reach it. */
function findEdge(bits: Uint32Array, wanted: number): { edge: number; size: number } {
  if (bits.length <= MAX_SORTED_LOGITS) return { edge: 0, size: bits.length }
  const bins = new Uint32Array(2 ** 16)
  for (let id = 0; id < bits.length; id += 1) {
    const bin = logitToKey(bits[id] as number) >>> 16
    bins[bin] = (bins[bin] as number) + 1
  }
  let bin = bins.length
  let size = 0
  while (size < wanted) size += bins[--bin] as number
  return { edge: bin * 2 ** 16, size }
}

/** Returns the `count` highest of the logits that are given by their keys, in descending order. */
export function rankByKeys(keys: Uint32Array, ids: Uint32Array, count: number): RankedLogits {
  const entries = Float64Array.from(keys, (key, index) => packEntry(key, ids[index] as number))
  return unpack(entries.sort().subarray(keys.length - count))
}

/** Decodes ascending entries into descending logits. */
function unpack(entries: Float64Array): RankedLogits {
  const ids = new Uint32Array(entries.length)
  const bits = new Uint32Array(entries.length)
  entries.forEach((entry, index) => {
    const rank = entries.length - 1 - index
    ids[rank] = ID_RANGE - 1 - (entry % ID_RANGE)
    bits[rank] = keyToBits(Math.floor(entry / ID_RANGE))
  })
  return { ids, scores: new Float32Array(bits.buffer) }
}

/** Returns the highest logit. */
function topLogit(scores: Float32Array): RankedLogits {
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

/** Returns log(sum of `exp(logit / temperature)`); the highest logit `max` if it is not finite. */
export function logSumExp(scores: Float32Array, max: number, temperature: number): number {
  if (!Number.isFinite(max)) return max
  let sum = 0
  for (let id = 0; id < scores.length; id += 1)
    sum += Math.exp(((scores[id] as number) - max) / temperature)
  return max / temperature + Math.log(sum)
}

// Maps the 32 bits of a logit to an integer key with the same order. Both zeros have one key. NaN
// has the highest key.

const NAN_KEY = 0xffffffff
const ZERO_KEY = 0x80000000

/** Returns the key of a logit from its bits. */
function logitToKey(bits: number): number {
  const magnitude = bits & 0x7fffffff
  if (magnitude > 0x7f800000) return NAN_KEY
  if (magnitude === 0) return ZERO_KEY
  return bits >>> 31 ? ~bits >>> 0 : (bits | ZERO_KEY) >>> 0
}

/** Returns the bits of a logit from its key. */
export const keyToBits = (key: number): number => (key >= ZERO_KEY ? key & 0x7fffffff : ~key) >>> 0
