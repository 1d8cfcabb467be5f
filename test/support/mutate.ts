/** Damages files at random places, as broken downloads and hostile authors do. */
import type { Chance } from './random.ts'

/** Numbers at which readers fail: limits of types, and sizes that no file has. */
const NUMBERS = [
  0n,
  1n,
  2n,
  3n,
  7n,
  31n,
  255n,
  2n ** 15n,
  2n ** 16n,
  2n ** 24n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 1n,
]

/**
 * Returns the bytes with one to three damages, all of them before the byte `end`; the last one may be
 * that the file is cut off there. The file becomes at most twice as long.
 */
export function mutate(
  bytes: Uint8Array<ArrayBuffer>,
  chance: Chance,
  end = bytes.length,
): Uint8Array<ArrayBuffer> {
  let mutated = bytes
  for (let left = 1 + chance.below(3); left > 0; left -= 1)
    mutated = damage(mutated, chance, Math.min(end, mutated.length))
  return mutated
}

function damage(
  bytes: Uint8Array<ArrayBuffer>,
  chance: Chance,
  end: number,
): Uint8Array<ArrayBuffer> {
  if (end < 1) return bytes
  const at = chance.below(end)
  const kind = chance.below(20)
  if (kind === 0) return bytes.slice(0, at)
  const length = Math.min(1 + chance.below(chance.often(0.5) ? 16 : 400), end - at)
  if (kind === 1) return splice(bytes, at, length, new Uint8Array(0))
  if (kind === 2) return splice(bytes, at, 0, bytes.slice(at, at + length))
  const changed = bytes.slice()
  if (kind < 6) {
    // Another part of the file, such as the type of another key.
    const from = chance.below(end)
    changed.set(bytes.subarray(from, Math.min(from + length, end)), at)
    return changed
  }
  if (kind < 12) {
    changed[at] = chance.below(256)
    return changed
  }
  const view = new DataView(changed.buffer)
  const number = chance.pick(NUMBERS)
  if (at + 8 > bytes.length) return changed
  if (chance.often(0.5)) view.setBigUint64(at, number, true)
  else view.setUint32(at, Number(BigInt.asUintN(32, number)), true)
  return changed
}

function splice(
  bytes: Uint8Array<ArrayBuffer>,
  at: number,
  removed: number,
  added: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(bytes.length - removed + added.length)
  joined.set(bytes.subarray(0, at))
  joined.set(added, at)
  joined.set(bytes.subarray(at + removed), at + added.length)
  return joined
}
