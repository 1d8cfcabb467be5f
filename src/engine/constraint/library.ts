/** Loads xgrammar when the first constraint needs it. */
import type * as Library from '@mlc-ai/web-xgrammar'
import { InoriginError } from '../../error.ts'

export type {
  CompiledGrammar,
  GrammarCompiler,
  GrammarMatcher,
  TokenizerInfo,
} from '@mlc-ai/web-xgrammar'
export type Xgrammar = Pick<typeof Library, 'GrammarCompiler' | 'GrammarMatcher' | 'TokenizerInfo'>

let loading: Promise<Xgrammar> | undefined

/** Resolves with the library, which all models share. The next call retries a failed load. */
export function loadXgrammar(): Promise<Xgrammar> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined
    throw new InoriginError(
      'unavailable',
      'The library for structured output could not be loaded. Try again.',
      {
        cause: error,
      },
    )
  })
  return loading
}

/** Loads the script. A bundled script has exports, and an unbundled one sets a global. */
async function load(): Promise<Xgrammar> {
  const module: Partial<Xgrammar> = await import('@mlc-ai/web-xgrammar')
  const found: unknown = module.GrammarMatcher ? module : Reflect.get(globalThis, 'xgrammar')
  return found as Xgrammar
}
