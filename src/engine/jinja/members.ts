/**
 * Members of lists. Templates ask for each message of a long history whether it is in a list, so the
 * members are looked up by a hash. No template can change a list, so its hashes are kept.
 */
import type { Budget } from './errors.ts'
import { iterate } from './sequences.ts'
import { Dict, toNumber, Tuple, Undefined, type Value } from './values.ts'

/** Members of a list, by what they are and by what they are equal to. */
interface Members {
  values: ReadonlySet<Value>
  /** Members that may be equal, by their hash. They are hashed when they are first asked for. */
  byHash: ReadonlyMap<number, readonly Value[]> | null
}

const known = new WeakMap<readonly Value[], Members>()

/** Returns `true` if a list has this very value, and otherwise the members that may be equal to it. */
export function findMembers(list: Value[], item: Value, budget: Budget): true | readonly Value[] {
  let members = known.get(list)
  if (!members) {
    members = { values: new Set(iterate(list, budget)), byHash: null }
    known.set(list, members)
  }
  if (members.values.has(item)) return true
  members.byHash ??= groupByHash(iterate(list, budget), budget)
  return members.byHash.get(hash(item, budget)) ?? []
}

function groupByHash(list: readonly Value[], budget: Budget): Map<number, Value[]> {
  const groups = new Map<number, Value[]>()
  for (const item of list) {
    const hashed = hash(item, budget)
    const group = groups.get(hashed)
    if (group) group.push(item)
    else groups.set(hashed, [item])
  }
  return groups
}

/** Levels, items of each list and characters of each text that a hash reads. */
const [LEVELS, ITEMS, CHARACTERS] = [5, 16, 64]

/** Returns a number that is the same for equal values. */
function hash(value: Value, budget: Budget, levels = LEVELS): number {
  budget.spend(1)
  const number = toNumber(value)
  // An int and a float are equal if their exact values are.
  if (number !== null) return hashText(String(Number(number)))
  if (typeof value === 'string') return mix(hashText(value.slice(0, CHARACTERS)), value.length)
  if (value === null || value instanceof Undefined || levels === 0) return 0
  if (value instanceof Dict) {
    // The order of keys does not matter.
    return value
      .entries()
      .reduce(
        (sum, [key, item]) => (sum + mix(hash(key, budget, 0), hash(item, budget, levels - 1))) | 0,
        value.size,
      )
  }
  const items = value instanceof Tuple ? value.items : value
  if (!Array.isArray(items)) return 1
  return (items as readonly Value[])
    .slice(0, ITEMS)
    .reduce((all: number, each) => mix(all, hash(each, budget, levels - 1)), items.length)
}

const mix = (hashed: number, more: number): number =>
  Math.imul(hashed ^ more ^ (hashed >>> 15), 0x01000193)

function hashText(text: string): number {
  let hashed = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hashed = mix(hashed, text.charCodeAt(at))
  return hashed
}
