/** Finds alternatives of a rule that can begin with the same byte. */
import type { StepBudget } from '../schema/step-budget.ts'
import { bytesOf, isRule, type Production, type Productions } from './production.ts'

/** Set of bytes, with a bit for each. */
type Head = Uint32Array

const createHead = (): Head => new Uint32Array(8)

const add = (head: Head, index: number, bits: number): void => {
  head[index] = (head[index] ?? 0) | bits
}

/** Returns a function that returns `true` if two of the productions can begin with the same byte. */
export function createOverlapCheck(
  rules: Productions,
  steps: StepBudget,
): (productions: readonly Production[]) => boolean {
  const heads = new Map<string, Head>()
  const nullable = findNullable(rules, steps)

  /** Returns the bytes that a text of the rule can begin with. */
  const headOf = (name: string): Head => {
    const cached = heads.get(name)
    if (cached) return cached
    const head = createHead()
    heads.set(name, head)
    for (const production of rules.get(name) ?? []) addHead(head, production)
    return head
  }

  const addHead = (head: Head, production: Production): void => {
    steps.spend(1)
    for (const item of production) {
      if (!isRule(item)) {
        for (const byte of bytesOf(item)) add(head, byte >> 5, 1 << (byte & 31))
        return
      }
      headOf(item.rule).forEach((word, index) => add(head, index, word))
      if (!nullable.has(item.rule)) return
    }
  }

  return (productions) => {
    const seen = createHead()
    return productions.some((production) => {
      const head = createHead()
      addHead(head, production)
      const clash = head.some((word, index) => (word & (seen[index] ?? 0)) !== 0)
      head.forEach((word, index) => add(seen, index, word))
      return clash
    })
  }
}

/** Returns the names of the rules that allow the empty text. */
function findNullable(rules: Productions, steps: StepBudget): Set<string> {
  const nullable = new Set<string>()
  const isNullable = (production: Production): boolean =>
    production.every((item) => isRule(item) && nullable.has(item.rule))
  for (let before = -1; before < nullable.size;) {
    before = nullable.size
    for (const [name, productions] of rules) {
      steps.spend(1 + productions.length)
      if (productions.some(isNullable)) nullable.add(name)
    }
  }
  return nullable
}
