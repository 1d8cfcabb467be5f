/**
 * `npm run conformance`: runs every client against the built playground and compares with
 * `docs/conformance.md`. `--write` writes that page; `--only TEXT` runs the columns, or the one check,
 * of that name and compares nothing; `--current` runs the current majors of the clients and compares
 * nothing; `--public` runs a public suite instead, with what follows `--`.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { buildDemo } from '../setup/demo.ts'
import { DOCUMENT, documentOf } from './document.ts'
import { runPublic } from './public.ts'
import { installCurrent, MODEL, runConformance } from './run.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    write: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    current: { type: 'boolean' },
    public: { type: 'boolean' },
  },
})
const { only = [], write = false, current = false } = values

buildDemo()
if (values.public) process.exit(await runPublic(MODEL, positionals))

let last = performance.now()
const elapsed = (): string => {
  const from = last
  last = performance.now()
  return `${((last - from) / 1000).toFixed(2)} s`
}
const results = await runConformance(
  ({ table, title }, check) =>
    only.every((text) => check === text || `${table} ${title}`.includes(text)),
  ({ table, title }, check, { outcome, reason }) =>
    console.log([outcome, elapsed(), `${table} ${title}`, check, reason].join('\t')),
  current ? installCurrent() : undefined,
)
const outcomes = results.flatMap((result) => Object.values(result.outcomes))
const count = (wanted: string) => outcomes.filter(({ outcome }) => outcome === wanted).length
console.log(`${count('pass')} pass, ${count('refused')} refused, ${count('failed')} failed`)

const isWhole = only.length === 0 && !current
const page = documentOf(results)
const before = existsSync(DOCUMENT) ? readFileSync(DOCUMENT, 'utf8') : ''
if (count('failed') > 0) {
  process.exitCode = 1
} else if (write && isWhole) {
  writeFileSync(DOCUMENT, page)
} else if (isWhole && page !== before) {
  console.log('docs/conformance.md is out of date. Write it again with --write.')
  process.exitCode = 1
}
