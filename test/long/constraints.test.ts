/** Constraints of many random schemas, sets of tools and grammars. */
import { expect, test } from 'vitest'
import { wrongGrammars } from '../support/grammars.ts'
import { tallySchemas, tallyTools } from '../support/random-constraints.ts'
import { guideVocabulary } from '../support/vocabulary.ts'

const PART = 100
const seeds = (parts: number, part = PART): number[] =>
  Array.from({ length: parts }, (_, index) => index * part)

test.each(seeds(10))('schemas from seed %i accept exactly the valid values', async (from) => {
  const tally = await tallySchemas(guideVocabulary(), from, PART)
  expect(tally.failures).toEqual([])
  // Few are rejected, since the generator makes supported ones.
  const rejected = [...tally.rejected.values()].reduce((sum, each) => sum + each, 0)
  expect(rejected).toBeLessThan(PART / 4)
  expect(tally.texts).toBeGreaterThan(PART)
})

test.each(seeds(10))('sets of tools from seed %i are called with valid arguments', async (from) => {
  const tally = await tallyTools(guideVocabulary(), from, PART)
  expect(tally.failures).toEqual([])
  expect(tally.texts).toBeGreaterThan(PART / 2)
})

test.each(seeds(40, 500))('grammars from seed %i accept exactly their texts', async (from) => {
  expect(await wrongGrammars(from, 500)).toEqual([])
})
