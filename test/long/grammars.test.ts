import { expect, test } from 'vitest'
import { wrongGrammars } from '../support/grammars.ts'
import { placeXgrammar } from '../support/xgrammar.ts'

placeXgrammar()

const PART = 500

test.each(Array.from({ length: 40 }, (_, part) => part * PART))(
  'Grammars from seed %i are kept',
  async (from) => {
    expect(await wrongGrammars(from, PART)).toEqual([])
  },
)
