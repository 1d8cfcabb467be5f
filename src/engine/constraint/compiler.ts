/** Compiles the constraints of one model, and caches compiled grammars by constraint. */
import { InoriginError } from '../../error.ts'
import type { Constraint } from '../constraint.ts'
import { createStepBudget } from '../schema/step-budget.ts'
import { createGrammarWriter } from './grammar-writer.ts'
import { buildGrammar, literalTexts } from './build.ts'
import type { ConstraintCompiler } from './types.ts'
import { type CompiledGrammar, loadXgrammar, type Xgrammar } from './library.ts'
import { limitTime } from './time-limit.ts'
import { createLongerTokenFinder } from './longer-tokens.ts'
import { createMatcher, findDoubtfulTokens } from './matcher.ts'
import { type CompiledVocabulary, compileVocabulary, type TokenTable } from './vocabulary.ts'

/** Maximum number of cached grammars. Grammars in use are never evicted. */
const MAX_CACHED_GRAMMARS = 16

interface CachedGrammar {
  loose: CompiledGrammar
  exact: CompiledGrammar | null
  users: number
}

/** Creates the constraints of a model. Loads nothing before the first constraint is opened. */
export function createConstraintCompiler(table: TokenTable): ConstraintCompiler {
  const doubtful = findDoubtfulTokens(table.bytes)
  const longer = createLongerTokenFinder(table.bytes)
  const compiler = createGrammarCompiler(table)
  const cache = createGrammarCache(compiler.compile)
  let closed = false

  return {
    open: async (constraint, signal) => {
      signal.throwIfAborted()
      if (closed) throw new InoriginError('unavailable', 'The model was closed.')
      const grammar = await cache.get(constraint)
      grammar.users += 1
      const onClose = (): void => {
        grammar.users -= 1
        void cache.evict(closed ? 0 : MAX_CACHED_GRAMMARS)
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
      void cache.evict(0).then(compiler.close)
    },
  }
}

interface GrammarCompiler {
  /** Compiles the grammar of a constraint, for the special tokens that it names. */
  compile(constraint: Constraint): Promise<CachedGrammar>
  /** Frees the vocabularies. */
  close(): Promise<void>
}

function createGrammarCompiler(table: TokenTable): GrammarCompiler {
  const writeEbnf = createGrammarWriter(table.bytes)
  const vocabularies = new Map<string, Promise<CompiledVocabulary>>()

  const prepare = (library: Xgrammar, visible: readonly string[]): Promise<CompiledVocabulary> => {
    const key = JSON.stringify(visible)
    const cached = vocabularies.get(key) ?? compileVocabulary(library, table, visible)
    vocabularies.set(key, cached)
    return cached
  }

  return {
    async compile(constraint) {
      const steps = createStepBudget()
      const grammar = limitDepth(() => buildGrammar(constraint, steps))
      // Writing handles all schemas together, so an error must not name the last one.
      steps.spend(0, '')
      const loose = limitDepth(() => writeEbnf(grammar, false, steps))
      const exact = loose.hasLongLimits ? limitDepth(() => writeEbnf(grammar, true, steps)) : null
      const library = await loadXgrammar()
      const literals = literalTexts(constraint).join('\n')
      const visible = [...table.special.keys()].filter((name) => literals.includes(name))
      const { compiler } = await prepare(library, visible)
      return {
        loose: await compiler.compileGrammar(loose.source),
        exact: exact && (await compiler.compileGrammar(exact.source)),
        users: 0,
      }
    },
    async close() {
      for (const each of vocabularies.values()) (await each).close()
      vocabularies.clear()
    },
  }
}

interface GrammarCache {
  get(constraint: Constraint): Promise<CachedGrammar>
  /** Evicts unused grammars, the least recently used first, until so many are left. */
  evict(maxGrammars: number): Promise<void>
}

function createGrammarCache(compile: GrammarCompiler['compile']): GrammarCache {
  const compiled = new Map<string, Promise<CachedGrammar>>()
  return {
    get(constraint) {
      const key = limitDepth(() => JSON.stringify(constraint))
      const cached = compiled.get(key) ?? compile(constraint)
      compiled.delete(key)
      compiled.set(key, cached)
      cached.catch(() => {
        if (compiled.get(key) === cached) compiled.delete(key)
      })
      return cached
    },
    async evict(maxGrammars) {
      for (const [key, promise] of compiled) {
        if (compiled.size <= maxGrammars) return
        const each = await promise.catch(() => null)
        if (!each || each.users > 0 || compiled.get(key) !== promise) continue
        compiled.delete(key)
        dispose(each)
      }
    },
  }
}

function dispose({ loose, exact }: CachedGrammar): void {
  loose.dispose()
  exact?.dispose()
}

/** Returns the result of recursive work. Throws `invalid_request` if it exhausts the stack. */
function limitDepth<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const what = 'The format, or a tool, is nested too deeply. Make it flatter.'
    throw new InoriginError('invalid_request', what, { cause })
  }
}
