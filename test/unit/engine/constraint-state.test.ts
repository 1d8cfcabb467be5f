import { afterAll, describe, expect, test } from 'vitest'
import type { Constraint } from '../../../src/engine/constraint.ts'
import { createConstraintCompiler } from '../../../src/engine/constraint/compiler.ts'
import { createConstraintState } from '../../../src/engine/run/constraint-state.ts'
import { smallVocabulary } from '../../support/vocabulary.ts'
import { placeXgrammar } from '../../support/xgrammar.ts'

placeXgrammar()

const WORDS = ['{"', 'red', 're', '": "']
const vocabulary = smallVocabulary(WORDS, [])
const constraints = createConstraintCompiler(vocabulary)
afterAll(() => constraints.close())

/** Ids of whole words of the vocabulary where the text has them, else of its characters. */
const encode = (text: string): number[] => {
  const word = [...WORDS].sort((a, b) => b.length - a.length).find((each) => text.startsWith(each))
  if (text === '') return []
  const next = word ?? text.charAt(0)
  return [idOf(next), ...encode(text.slice(next.length))]
}
const idOf = (text: string): number => {
  const wanted = new TextEncoder().encode(text).join()
  return vocabulary.bytes.findLastIndex((bytes) => bytes?.join() === wanted)
}

const open = async (constraint: Constraint) => {
  const state = createConstraintState({ constraints, encode, signal: new AbortController().signal })
  await state.setConstraint(constraint)
  return state
}
const object = (properties: Record<string, object>, required: string[]): Constraint => ({
  type: 'json',
  schema: { type: 'object', properties, required, additionalProperties: false },
})
const allows = (mask: Int32Array | null, id: number): boolean =>
  mask !== null && ((mask[id >> 5] ?? 0) >>> (id & 31)) % 2 === 1

describe('What must come next', () => {
  test('is given, but for a last token that a longer one may stand for', async () => {
    const state = await open({ type: 'json', schema: { type: 'object' } })
    // `{` is certain, but a model may have learnt `{"` as one.
    expect(state.forcedTokens).toEqual([])
    const mask = await state.tokenMask()
    expect(allows(mask, idOf('{'))).toBe(true)
    expect(allows(mask, idOf('{"'))).toBe(true)
    state.accept(idOf('{"'))
    expect(state.forcedTokens).toEqual([])
    state.close()
  })

  test('is given whole where no longer token fits', async () => {
    const state = await open(object({ a: { type: 'string' } }, ['a']))
    expect(state.forcedTokens).toEqual(['{"', 'a', '": "'].map(idOf))
    state.close()
  })

  test('leaves a choice that begins alike to the model', async () => {
    const state = await open(object({ a: { enum: ['red', 'rex'] } }, ['a']))
    // `re` is certain, `red` is likelier.
    expect(state.forcedTokens).toEqual(['{"', 'a', '": "'].map(idOf))
    const mask = await state.tokenMask()
    expect(allows(mask, idOf('red'))).toBe(true)
    expect(allows(mask, idOf('re'))).toBe(true)
    state.forcedTokens.length = 0
    state.accept(idOf('red'))
    expect(state.forcedTokens).toEqual(encode('"}'))
    state.close()
  })
})
