/** Constraints of one model: compiled once, kept while they are in use or were of use lately. */
import { InoriginError } from '../../../error.ts'
import type { Constraint } from '../../constraint.ts'
import { buildGrammar, spelled } from './build.ts'
import type { Constraints } from './contract.ts'
import { type Ebnf, toEbnf } from './ebnf.ts'
import { type CompiledGrammar, loadXgrammar, type Xgrammar } from './library.ts'
import { createMatcher, findDoubtful } from './matcher.ts'
import { type Prepared, prepareVocabulary, type TokenTable } from './vocabulary.ts'

export interface ConstraintsOptions extends Omit<TokenTable, 'width'> {
  /** Scores of a row, where they are more than tokens. Default: as many as tokens. */
  width?: number
}

/** Compiled grammars that are kept beside those in use. */
const KEPT = 16

/** Beyond so many rules compiling takes seconds, during which nothing else is answered. */
const MOST_RULES = 4000

interface Compiled {
  loose: CompiledGrammar
  exact: CompiledGrammar | null
  users: number
}

/** Loads nothing before the first constraint is opened. */
export function createConstraints(options: ConstraintsOptions): Constraints {
  const table: TokenTable = { ...options, width: Math.max(options.width ?? 0, options.bytes.length) }
  const doubtful = findDoubtful(table.bytes)
  const vocabularies = new Map<string, Promise<Prepared>>()
  const compiled = new Map<string, Promise<Compiled>>()
  let closed = false

  const prepare = (library: Xgrammar, visible: readonly string[]): Promise<Prepared> => {
    const key = JSON.stringify(visible)
    const known = vocabularies.get(key) ?? prepareVocabulary(library, table, visible)
    vocabularies.set(key, known)
    return known
  }

  const compile = async (constraint: Constraint): Promise<Compiled> => {
    const grammar = buildGrammar(constraint)
    const loose = sized(toEbnf(grammar, false))
    const exact = sized(toEbnf(grammar, true))
    const library = await loadXgrammar()
    const named = spelled(constraint).join('\n')
    const visible = [...table.special.keys()].filter((name) => named.includes(name))
    const { compiler } = await prepare(library, visible)
    return {
      loose: await compiler.compileGrammar(loose.source),
      exact: exact.source === loose.source ? null : await compiler.compileGrammar(exact.source),
      users: 0,
    }
  }

  const obtain = (constraint: Constraint): Promise<Compiled> => {
    const key = JSON.stringify(constraint)
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
        return createMatcher({ loose, exact, doubtful, width: table.width, onClose })
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

function sized(grammar: Ebnf): Ebnf {
  if (grammar.rules <= MOST_RULES) return grammar
  throw new InoriginError(
    'invalid_request',
    `This format, or these tools, make a grammar of ${grammar.rules} rules; ${MOST_RULES} are the most. ` +
      'Use fewer properties, or shorter lists and ranges.',
    { code: 'constraint_too_large' },
  )
}
