import { expect, test } from 'vitest'
import { tallySchemas } from '../support/keeping.ts'
import { guideVocabulary } from '../support/vocabulary.ts'
import { placeXgrammar } from '../support/xgrammar.ts'

placeXgrammar()

const PART = 100

test.each(Array.from({ length: 10 }, (_, part) => part * PART))(
  'Schemas from seed %i are kept, and keep nothing out that is valid',
  async (from) => {
    const tally = await tallySchemas(guideVocabulary(), from, PART)
    expect(tally.failures).toEqual([])
    // Few are refused: the generator makes what is supported.
    expect([...tally.refused.values()].reduce((sum, each) => sum + each, 0)).toBeLessThan(PART / 4)
    expect(tally.texts).toBeGreaterThan(PART)
  },
)
