/** The rules of .ci/lint find what they are for, and nothing else. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const OXLINT = join(ROOT, 'node_modules/oxlint/bin/oxlint')
const RULES = ['tests/concurrent-expect', 'tests/no-fixed-wait', 'tests/wait-timeout']

const HEAD = "import { describe, expect, it, test } from 'vitest'\n"

/** What each rule must find, and in which line. */
const CASES: readonly { code: string; finds: readonly string[] }[] = [
  ...[
    "test.concurrent('a', async () => {\n  expect(1).toBe(1)\n})",
    "test.concurrent.each([1])('a', async (one) => {\n  expect(one).toBe(1)\n})",
    "it.skipIf(false).concurrent('a', async () => {\n  await expect.poll(() => 1).toBe(1)\n})",
    "test('a', { concurrent: true }, async () => {\n  expect(1).toBe(1)\n})",
    "describe.concurrent('a', () => { test('b', () => {\n  expect(1).toBe(1)\n}) })",
    "test.concurrent('a', check); async function check() {\n  expect(1).toBe(1)\n}",
    "const check = () => {\n  expect(1).toBe(1)\n}\ntest.concurrent('a', async () => check())",
    "test.concurrent('a', async () => check())\nconst deep = () => expect(1).toBe(1)\nfunction check() { deep() }",
  ].map((code) => ({ code: HEAD + code, finds: ['3 concurrent-expect'] })),
  ...[
    "test.concurrent('a', async ({ expect }) => { expect(1).toBe(1) })",
    "describe.concurrent('a', () => { test('b', ({ expect: own }) => { own(1).toBe(1) }) })",
    "test('a', () => { expect(1).toBe(1) })\ntest.concurrent('b', async ({ expect }) => { expect(1).toBe(1) })",
    "test.sequential('a', { concurrent: false }, () => { expect(1).toBe(1) })",
  ].map((code) => ({ code: HEAD + code, finds: [] })),
  ...[
    'await new Promise((resolve) => setTimeout(resolve, 20))',
    'await new Promise<void>((done) => { setTimeout(done, wait) })',
    'await new Promise(function (done) { globalThis.setTimeout(() => done(1), 5) })',
    "await Promise.race([new Promise((resolve) => setTimeout(resolve, 50, 'late'))])",
  ].map((code) => ({ code, finds: ['1 no-fixed-wait'] })),
  ...[
    'await new Promise((resolve) => setTimeout(resolve))',
    'await new Promise((resolve) => setTimeout(resolve, 0))',
    'setTimeout(() => controller.abort(), 20)',
    'await new Promise((resolve, reject) => { setTimeout(reject, 20); start(resolve) })',
  ].map((code) => ({ code, finds: [] })),
  ...['await vi.waitFor(() => check())', 'await vi.waitUntil(done, { interval: 1 })'].map(
    (code) => ({ code, finds: ['1 wait-timeout'] }),
  ),
  ...['await vi.waitFor(check, 20_000)', 'await vi.waitUntil(done, { timeout: 5 })'].map(
    (code) => ({
      code,
      finds: [],
    }),
  ),
]

let folder: string
let output: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-lint-'))
  const config = {
    plugins: [],
    categories: {},
    jsPlugins: [join(ROOT, '.ci/lint/tests.mjs')],
    rules: Object.fromEntries(RULES.map((rule) => [rule, 'error'])),
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  for (const [index, { code }] of CASES.entries())
    writeFileSync(join(folder, `case-${index}.ts`), code)
  const args = [OXLINT, '-c', 'config.json', '--format', 'unix', '.']
  output = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' }).stdout
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each(CASES.map((one, index) => ({ ...one, index })))(
  'finds $finds in $code',
  ({ index, finds }) => {
    const lines = output.matchAll(/case-(\d+)\.ts:(\d+):.*tests[(/]([a-z-]+)/g)
    const found = Array.from(lines, ([, at, line, rule]) => ({
      at: Number(at),
      text: `${line} ${rule}`,
    }))
    expect(found.filter(({ at }) => at === index).map(({ text }) => text)).toEqual(finds)
  },
)
