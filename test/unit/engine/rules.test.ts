import { afterAll, describe, expect, test } from 'vitest'
import type { Constraint } from '../../../src/engine/constraint.ts'
import { createConstraintCompiler } from '../../../src/engine/constraint/compiler.ts'
import { createRules } from '../../../src/engine/run/rules.ts'
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

const follow = async (constraint: Constraint) => {
  const rules = createRules({ constraints, encode, signal: new AbortController().signal })
  await rules.follow(constraint)
  return rules
}
const object = (properties: Record<string, object>, required: string[]): Constraint => ({
  type: 'json',
  schema: { type: 'object', properties, required, additionalProperties: false },
})
const allows = (mask: Int32Array | null, id: number): boolean =>
  mask !== null && ((mask[id >> 5] ?? 0) >>> (id & 31)) % 2 === 1

describe('What must come next', () => {
  test('is given, but for a last token that a longer one may stand for', async () => {
    const rules = await follow({ type: 'json', schema: { type: 'object' } })
    // `{` is certain, but a model may have learnt `{"` as one.
    expect(rules.given).toEqual([])
    const mask = await rules.mask()
    expect(allows(mask, idOf('{'))).toBe(true)
    expect(allows(mask, idOf('{"'))).toBe(true)
    rules.accept(idOf('{"'))
    expect(rules.given).toEqual([])
    rules.close()
  })

  test('is given whole where no longer token fits', async () => {
    const rules = await follow(object({ a: { type: 'string' } }, ['a']))
    expect(rules.given).toEqual(['{"', 'a', '": "'].map(idOf))
    rules.close()
  })

  test('leaves a choice that begins alike to the model', async () => {
    const rules = await follow(object({ a: { enum: ['red', 'rex'] } }, ['a']))
    // `re` is certain, `red` is likelier.
    expect(rules.given).toEqual(['{"', 'a', '": "'].map(idOf))
    const mask = await rules.mask()
    expect(allows(mask, idOf('red'))).toBe(true)
    expect(allows(mask, idOf('re'))).toBe(true)
    rules.given.length = 0
    rules.accept(idOf('red'))
    expect(rules.given).toEqual(encode('"}'))
    rules.close()
  })
})
