/** Compiles the constraints of one model, and caches compiled grammars by constraint. */
import { InoriginError } from '../../error.ts'
import type { Constraint } from '../constraint.ts'
import type { Grammar } from '../schema/expression.ts'
import { createSteps, type Steps } from '../schema/steps.ts'
import { createBudget } from './budget.ts'
import { buildGrammar, spelled } from './build.ts'
import type { Constraints } from './contract.ts'
import { type CompiledGrammar, loadXgrammar, type Xgrammar } from './library.ts'
import type { Ebnf } from './ebnf.ts'
import { limitTime } from './limit.ts'
import { findLonger } from './longer.ts'
import { createMatcher, findDoubtful } from './matcher.ts'
import { type Prepared, prepareVocabulary, type TokenTable } from './vocabulary.ts'

/** Maximum number of cached grammars. Grammars in use are never evicted. */
const KEPT = 16

interface Compiled {
  loose: CompiledGrammar
  exact: CompiledGrammar | null
  users: number
}

/** Creates the constraints of a model. Loads nothing before the first constraint is opened. */
export function createConstraints(table: TokenTable): Constraints {
  const budget = createBudget(table.bytes)
  const doubtful = findDoubtful(table.bytes)
  const longer = findLonger(table.bytes)
  const vocabularies = new Map<string, Promise<Prepared>>()
  const compiled = new Map<string, Promise<Compiled>>()
  let closed = false

  const prepare = (library: Xgrammar, visible: readonly string[]): Promise<Prepared> => {
    const key = JSON.stringify(visible)
    const known = vocabularies.get(key) ?? prepareVocabulary(library, table, visible)
    vocabularies.set(key, known)
    return known
  }

  const write = (grammar: Grammar, steps: Steps): { loose: Ebnf; exact: Ebnf | null } => {
    try {
      const loose = budget(grammar, false, steps)
      return { loose, exact: loose.limited ? budget(grammar, true, steps) : null }
    } catch (error) {
      if (error instanceof RangeError) throw tooDeep(error)
      throw error
    }
  }

  const compile = async (constraint: Constraint): Promise<Compiled> => {
    const steps = createSteps()
    const grammar = buildGrammar(constraint, steps)
    // Writing handles all schemas together, so an error must not name the last one.
    steps.spend(0, '')
    const { loose, exact } = write(grammar, steps)
    const library = await loadXgrammar()
    const named = spelled(constraint).join('\n')
    const visible = [...table.special.keys()].filter((name) => named.includes(name))
    const { compiler } = await prepare(library, visible)
    return {
      loose: await compiler.compileGrammar(loose.source),
      exact: exact && (await compiler.compileGrammar(exact.source)),
      users: 0,
    }
  }

  const obtain = (constraint: Constraint): Promise<Compiled> => {
    const key = keyOf(constraint)
    const known = compiled.get(key) ?? compile(constraint)
    compiled.delete(key)
    compiled.set(key, known)
    known.catch(() => {
      if (compiled.get(key) === known) compiled.delete(key)
    })
    return known
  }

  const forget = async (most: number): Promise<void> => {
    for (const [key, promise] of compiled) {
      if (compiled.size <= most) return
      const each = await promise.catch(() => null)
      if (!each || each.users > 0 || compiled.get(key) !== promise) continue
      compiled.delete(key)
      dispose(each)
    }
  }

  return {
    open: async (constraint, signal) => {
      signal.throwIfAborted()
      if (closed) throw new InoriginError('unavailable', 'The model was closed.')
      const grammar = await obtain(constraint)
      grammar.users += 1
      const onClose = (): void => {
        grammar.users -= 1
        void forget(closed ? 0 : KEPT)
      }
      try {
        signal.throwIfAborted()
        const { GrammarMatcher } = await loadXgrammar()
        const loose = await GrammarMatcher.createGrammarMatcher(grammar.loose)
        const exact = grammar.exact && (await GrammarMatcher.createGrammarMatcher(grammar.exact))
        const width = table.bytes.length
        return limitTime(createMatcher({ loose, exact, doubtful, longer, width, onClose }))
      } catch (error) {
        onClose()
        throw error
      }
    },
    close: () => {
      closed = true
      void forget(0).then(async () => {
        for (const each of vocabularies.values()) (await each).close()
        vocabularies.clear()
      })
    },
  }
}

function dispose({ loose, exact }: Compiled): void {
  loose.dispose()
  exact?.dispose()
}

function keyOf(constraint: Constraint): string {
  try {
    return JSON.stringify(constraint)
  } catch (error) {
    throw tooDeep(error)
  }
}

const tooDeep = (cause: unknown): InoriginError =>
  new InoriginError(
    'invalid_request',
    'The format, or a tool, is nested too deeply. Make it flatter.',
    {
      cause,
    },
  )
