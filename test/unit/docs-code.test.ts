/** The code of the documentation: data parse, and commands exist. */
import { expect, test } from 'vitest'
import { findFile, listBlocks, listPages, listSpans } from '../support/docs-code/blocks.ts'
import { checkMention, checkScript } from '../support/docs-code/commands.ts'
import { isRecipe, RECIPES } from '../support/docs-code/recipes.ts'

const PAGES = listPages()
const BLOCKS = PAGES.flatMap(listBlocks)

test('every block has a language that is checked', () => {
  expect(BLOCKS.length).toBeGreaterThan(70)
  const CHECKED = ['ts', 'tsx', 'js', 'jsx', 'json', 'sh', 'csp']
  // A picture, which nothing here can draw.
  const DRAWN = 'mermaid'
  const others = BLOCKS.filter(
    (block) => ![...CHECKED, DRAWN].includes(block.language) && !isRecipe(block),
  )
  expect(others.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test.each(Object.values(RECIPES))('the page has the files of the recipe $name', (recipe) => {
  for (const file of recipe.files) expect(findFile(recipe.page, file)).toMatch(/\w/)
})

test.each(BLOCKS.filter(({ language }) => language === 'json'))(
  'JSON of $page:$line parses',
  ({ code }) => {
    expect(() => JSON.parse(code)).not.toThrow()
  },
)

test('every command of a block exists, with its options', () => {
  const shells = BLOCKS.filter(({ language }) => language === 'sh')
  expect(shells.length).toBeGreaterThan(20)
  expect(shells.flatMap(checkScript)).toEqual([])
})

test('every command in the text exists, with its options', () => {
  const isCommand = (span: string) => /^(npx inorigin|npm run|inorigin) [a-z]/.test(span)
  const found = PAGES.flatMap((page) =>
    listSpans(page)
      .filter(isCommand)
      .map((span) => ({ page, span })),
  )
  expect(found.length).toBeGreaterThan(20)
  expect(found.flatMap(({ page, span }) => checkMention(page, span))).toEqual([])
})
