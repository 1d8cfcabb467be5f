/** Abilities of an entry, in words. */
import type { EntryFacts } from './facts.ts'

const ABILITIES: readonly (readonly [capability: string, words: string])[] = [
  ['image_input', 'images'],
  ['tools', 'tools'],
  ['thinking', 'reasoning'],
  ['structured_outputs', 'JSON Schema'],
]

/** Returns what the entry can do, such as `text` and `tools`. */
export function traitsOf({ state, listed }: EntryFacts): string[] {
  const can = (name: string): boolean => listed?.capabilities?.[name]?.supported === true
  if (can('embeddings')) return ['embeddings']
  if (state.type === 'predictor') return ['predictor']
  return ['text', ...ABILITIES.flatMap(([name, words]) => (can(name) ? [words] : []))]
}
