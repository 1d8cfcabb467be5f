/** xgrammar, loaded when the first constraint needs it. */
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

/** The same for everyone; a failed load is tried again. */
export function loadXgrammar(): Promise<Xgrammar> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined
    throw new InoriginError(
      'unavailable',
      'The part that constrains answers could not be loaded.',
      {
        cause: error,
      },
    )
  })
  return loading
}

/** A script of the old kind: bundled it has exports, on its own it sets a global. */
async function load(): Promise<Xgrammar> {
  const module: Partial<Xgrammar> = await import('@mlc-ai/web-xgrammar')
  const found: unknown = module.GrammarMatcher ? module : Reflect.get(globalThis, 'xgrammar')
  return found as Xgrammar
}
