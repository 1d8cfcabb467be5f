/** The code of the documentation: modules compile, data parse, and commands exist. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { findFile, listBlocks, listPages, listSpans, ROOT } from '../support/docs-code/blocks.ts'
import { checkMention, checkScript } from '../support/docs-code/commands.ts'
import { writeModules } from '../support/docs-code/modules.ts'
import { isRecipe, RECIPES } from '../support/docs-code/recipes.ts'

const PAGES = listPages()
const BLOCKS = PAGES.flatMap(listBlocks)

const OPTIONS = {
  allowJs: true,
  checkJs: true,
  jsx: 'react-jsx',
  types: ['node', 'vite/client'],
  // A block may show a value that the reader uses.
  noUnusedLocals: false,
  noUnusedParameters: false,
  // Most apps allow `outputs.digit` of a record, and nothing is emitted.
  noPropertyAccessFromIndexSignature: false,
  rewriteRelativeImportExtensions: false,
}

/** Resolves with the errors of the compiler, by page and line. */
async function compile(folder: string): Promise<string[]> {
  const config = { extends: join(ROOT, 'test/tsconfig.json'), compilerOptions: OPTIONS }
  const files = { include: ['pages'], exclude: [] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...config, ...files }))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [tsc, '-p', folder, '--pretty', 'false']
  const { stdout } = await promisify(execFile)(process.execPath, args).catch(
    (failed: { stdout: string }) => failed,
  )
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) =>
      line.replace(
        /^.*\/pages\/(.*)~\d+\.\w+\((\d+),/,
        (_all, page: string, at: string) => `${page.replaceAll('~', '/')}.md:${at} (`,
      ),
    )
}

test('every block has a language that is checked', () => {
  expect(BLOCKS.length).toBeGreaterThan(70)
  const CHECKED = ['ts', 'tsx', 'js', 'jsx', 'json', 'sh', 'csp']
  const others = BLOCKS.filter((block) => !CHECKED.includes(block.language) && !isRecipe(block))
  expect(others.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test.each(Object.values(RECIPES))('the page has the files of the recipe $name', (recipe) => {
  for (const file of recipe.files) expect(findFile(recipe.page, file)).toMatch(/\w/)
})

test('every module compiles against the entry points', { timeout: 300_000 }, async () => {
  const folder = writeModules(BLOCKS)
  try {
    expect(folder.modules.length).toBeGreaterThan(40)
    expect(await compile(folder.path)).toEqual([])
  } finally {
    folder.remove()
  }
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
