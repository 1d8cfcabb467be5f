/**
 * Every client, every feature: `docs/conformance.md` says what is seen here.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { DOCUMENT, documentOf } from '../conformance/document.ts'
import { runConformance, type Result } from '../conformance/run.ts'

const TABLES = ['OpenAI SDK', 'Anthropic SDK', 'AI SDK', 'LangChain', 'Predictor client']

let results: Result[]

// Beside other tests, all clients together took more than ten minutes on two cores.
beforeAll(async () => {
  results = await runConformance()
}, 1_800_000)

test.each(TABLES)('%s: each check passes, or is refused by name', (table) => {
  const columns = results.filter((result) => result.table === table)
  const failed = columns.flatMap(({ title, outcomes }) =>
    Object.entries(outcomes).flatMap(([check, { outcome, reason }]) =>
      outcome === 'failed' ? [`${title}, ${check}: ${reason}`] : [],
    ),
  )
  expect(columns.length).toBeGreaterThan(0)
  expect(failed).toEqual([])
})

test('docs/conformance.md says what was seen', () => {
  expect(new Set(results.map(({ table }) => table))).toEqual(new Set(TABLES))
  expect(readFileSync(DOCUMENT, 'utf8')).toBe(documentOf(results))
})
