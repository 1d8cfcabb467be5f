import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pageOf, planTests } from '../../wpt/plan.ts'
import { summarize, toFileReport, toTable } from '../../wpt/table.ts'

let folder: string

const FILES = {
  'resources/util.js': '',
  'language-model/create.window.js':
    '// META: script=/resources/testdriver.js\n// META: script=../resources/util.js\nsession.inputQuota\n',
  'language-model/deep/lost.window.js': '// META: script=nowhere.js\n',
  'language-model/garbage.window.js': "promise_test(async t => {\n  gc()\n}, 'one');\n",
  'language-model/params.window.js': 'const { defaultTopK } = await LanguageModel.params()\n',
  'language-model/sampling.window.js': "create({ samplingMode: 'balanced', temperature: 1 })\n",
  'language-model/tool.window.js': [
    "const TOOL_CALL_TRIGGER = '<GenerateSimpleToolCalls>';",
    "promise_test(async t => {\n  await create({ tools: [] });\n}, 'no tools');",
    '// The EchoAILanguageModel calls tools.',
    "promise_test(async t => {\n  await prompt(TOOL_CALL_TRIGGER);\n}, 'a call');",
    "promise_test(async t => {\n  // The echo model answers.\n}, \"it's an 'answer'\");",
    'promise_test(async t => {\n  const isEcho = true;\n});',
  ].join('\n\n'),
  'language-model/a-iframe.tentative.html': '<p>',
  'language-model/resources/helper.html': '<p>',
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-wpt-'))
  for (const [name, text] of Object.entries(FILES)) {
    const file = join(folder, 'ai', name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
})

afterAll(() => rmSync(folder, { recursive: true }))

test('tests that need a browser of their own are left out with a reason', () => {
  const planned = planTests(folder)
  expect(planned.map(({ name, skipped }) => [name, skipped !== undefined])).toEqual([
    ['a-iframe.tentative.html', true],
    ['create.window.js', false],
    ['deep/lost.window.js', false],
    ['garbage.window.js', true],
    ['params.window.js', false],
    ['sampling.window.js', false],
    ['tool.window.js', false],
  ])
  expect(() => planTests(join(folder, 'ai'))).toThrow('has no folder ai/language-model')
})

test('names that only extensions have are there for the tests that use them', () => {
  const legacy = planTests(folder).filter(({ isLegacy }) => isLegacy)
  expect(legacy.map(({ name }) => name)).toEqual([
    'create.window.js',
    'params.window.js',
    'sampling.window.js',
  ])
})

test('only those tests of a file are left out that need the echo model', () => {
  const { echoTests = [] } = planTests(folder).find(({ name }) => name === 'tool.window.js') ?? {}
  expect(echoTests).toEqual(['a call', "it's an 'answer'"])
  const tests = ['no tools', 'a call'].map((name) => ({ name, status: 0, message: null }))
  const report = { status: 0, message: null, tests }
  const file = toFileReport({ name: 'tool', skipped: undefined, report, echoTests })
  expect(toTable([file])).toBe(
    '1/1 tool\n    left out: 1 tests that need the echo model of Chromium',
  )
  expect(summarize([file])).toMatch('1 tests and 0 files were left out')
})

test('a page has the scripts of its test, without the driver, and names a missing one', () => {
  const [, found, lost] = planTests(folder)
  if (!found || !lost) throw new Error('The folder has no tests.')
  const page = pageOf(found, folder, '')
  const scripts = ['/ai/resources/util.js', '/ai/language-model/create.window.js']
  expect(page).toContain(JSON.stringify(scripts))
  expect(page).toContain('legacy: true')
  expect(() => pageOf(lost, folder, '')).toThrow('nowhere.js is missing')
})

test('the table counts what passed, and tells why others did not', () => {
  const reports = [
    {
      name: 'a',
      skipped: undefined,
      report: {
        status: 0,
        message: null,
        tests: [
          { name: 'one', status: 0, message: null },
          { name: 'two', status: 1, message: 'expected 1' },
          { name: 'three', status: 4, message: 'no sound' },
        ],
      },
      left: 0,
    },
    { name: 'b', skipped: 'needs more', report: undefined, left: 0 },
  ]
  expect(toTable(reports)).toBe(
    [
      '1/2 a',
      '    FAILED: two: expected 1',
      '    not supported: three: no sound',
      '- b: left out, because it needs more',
    ].join('\n'),
  )
  expect(summarize(reports)).toBe(
    '1 of 2 tests passed (50.0 %); 1 test what the model does not support; 0 tests and 1 files were left out',
  )
})
