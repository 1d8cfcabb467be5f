import { expect, test } from 'vitest'
import { tallySchemas } from '../../support/keeping.ts'
import { guideVocabulary } from '../../support/vocabulary.ts'
import { placeXgrammar } from '../../support/xgrammar.ts'

placeXgrammar()

test('Random schemas are kept, and keep nothing out that is valid', { timeout: 60_000 }, async () => {
  const tally = await tallySchemas(guideVocabulary(), 0, 40)
  expect(tally.failures).toEqual([])
  expect(tally.texts).toBeGreaterThan(60)
  expect(tally.values).toBeGreaterThan(60)
})
