import { expect, test } from 'vitest'
import { wrongGrammars } from '../../support/grammars.ts'
import { tallySchemas } from '../../support/keeping.ts'
import { tallyTools } from '../../support/tools.ts'
import { guideVocabulary } from '../../support/vocabulary.ts'
import { placeXgrammar } from '../../support/xgrammar.ts'

placeXgrammar()

test(
  'Random schemas are kept, and keep nothing out that is valid',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
    const tally = await tallySchemas(guideVocabulary(), 0, 40)
    expect(tally.failures).toEqual([])
    expect(tally.texts).toBeGreaterThan(60)
    expect(tally.values).toBeGreaterThan(60)
  },
)

test(
  'Random sets of tools are called as they ask for',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
    const tally = await tallyTools(guideVocabulary(), 0, 20)
    expect(tally.failures).toEqual([])
    expect(tally.texts).toBeGreaterThan(10)
  },
)

test('Random grammars are kept', { timeout: 300_000 }, async () => {
  expect(await wrongGrammars(0, 150)).toEqual([])
})
