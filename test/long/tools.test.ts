import { expect, test } from 'vitest'
import { tallyTools } from '../support/tools.ts'
import { guideVocabulary } from '../support/vocabulary.ts'
import { placeXgrammar } from '../support/xgrammar.ts'

placeXgrammar()

const PART = 100

test.each(Array.from({ length: 10 }, (_, part) => part * PART))(
  'Sets of tools from seed %i are called as they ask for',
  async (from) => {
    const tally = await tallyTools(guideVocabulary(), from, PART)
    expect(tally.failures).toEqual([])
    expect(tally.texts).toBeGreaterThan(PART / 2)
  },
)
