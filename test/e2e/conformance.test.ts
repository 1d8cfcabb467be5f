/**
 * Every client and every feature, in a page, through the service worker, with the embedded models.
 * `docs/conformance.md` says what is seen here. The clients of an app that its bundler put into the page are
 * among them: `npm test` runs both official SDKs.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DOCUMENT, documentOf } from '../conformance/document.ts'
import { openStage, type Outcome, type Result, type Stage } from '../conformance/run.ts'

/** Checks of both official SDKs in `npm test`: one of each kind. The others differ in the request alone. */
const EVERYDAY = ['text', 'stream', 'abort', 'toolsStream', 'jsonSchema', 'models', 'unauthorised']

/** Columns of the page. */
const OFFICIAL = ['OpenAI SDK: chat', 'Anthropic SDK: 1.x']
const OTHERS = [
  'OpenAI SDK: responses',
  'Anthropic SDK: 0.x',
  'AI SDK: openai(id)',
  'AI SDK: openai.chat(id)',
  'AI SDK: openai-compatible',
  'AI SDK: anthropic',
  'LangChain: ChatOpenAI',
  'LangChain: ChatOpenAI, responses',
  'LangChain: ChatAnthropic',
  'Predictor client: requests',
]
/** Beside other tests, all checks of a client took a minute on two cores. */
const TIMEOUT_MS = 600_000

const results: Result[] = []
let stage: Stage

beforeAll(async () => {
  stage = await openStage()
})

afterAll(() => stage?.close())

const indexOf = (name: string): number =>
  stage.columns.findIndex(({ table, title }) => `${table}: ${title}` === name)

/** Runs all checks of the column with that name. None may fail. */
async function expectPassed(name: string): Promise<void> {
  const index = indexOf(name)
  const column = stage.columns[index]!
  const outcomes: Record<string, Outcome> = {}
  for (const check of column.checks) outcomes[check] = await stage.check(index, check)
  results.push({ ...column, outcomes })
  const failed = Object.entries(outcomes).filter(([, { outcome }]) => outcome === 'failed')
  expect(failed).toEqual([])
}

test.each(OFFICIAL)(
  '%s: text, stream, abort, tools, JSON, models and key',
  { tags: ['everyday'] },
  async (name) => {
    const index = indexOf(name)
    for (const check of EVERYDAY) {
      expect(await stage.check(index, check), check).toMatchObject({ outcome: 'pass' })
    }
  },
)

test.each([...OFFICIAL, ...OTHERS])(
  '%s: each check passes, or is refused by name',
  { tags: ['slow'], timeout: TIMEOUT_MS },
  expectPassed,
)

test('docs/conformance.md says what was seen', { tags: ['slow'] }, () => {
  const nameOf = ({ table, title }: { table: string; title: string }) => `${table}: ${title}`
  const order = stage.columns.map(nameOf)
  const sorted = results.toSorted(
    (one, other) => order.indexOf(nameOf(one)) - order.indexOf(nameOf(other)),
  )
  expect(sorted.map(nameOf)).toEqual(order)
  expect(readFileSync(DOCUMENT, 'utf8')).toBe(documentOf(sorted))
})
