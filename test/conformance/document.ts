/** Writes `docs/conformance.md` from the results of the checks. */
import { readFileSync } from 'node:fs'
import { FEATURES, REQUESTS } from './features.ts'
import type { Outcome, Result } from './run.ts'

export const DOCUMENT = new URL('../../docs/conformance.md', import.meta.url).pathname

const ROWS: Readonly<Record<string, string>> = { ...FEATURES, ...REQUESTS }

const INTRODUCTION = `# Conformance

This page shows what existing clients can do with a page's own origin as their server. Each cell is a check that ran
in Chromium, through the service worker, with the embedded model \`@inorigin/guide\`. Images go to the embedded model
\`@inorigin/glance\`: it must count their tokens, and name the color of a circle. \`npm run test:all\` runs all checks,
and fails if the results differ from this page. \`npm run conformance\` runs only these checks. \`npm run conformance --
--write\` writes this page again.

- **pass**: The client does what its own documentation says, and the result is correct. Calls name tools that were
  offered, and their arguments match the schemas. Finish reasons are correct, and token counts add up. Errors have the
  client's own classes, and the client does not retry them in vain.
- **refused**: The server rejects the request with a 400 or 404 that names the unsupported feature. The number refers to
  the message in the last section.
- **-**: The client cannot request the feature, or does not send it.

Every stream that a client received was also checked, event by event, against a strict grammar. Every error was checked
against the one error body that all clients read. No check but that of images depends on what the model prefers to write.
If a check needs a tool call, reasoning, an end or a long answer, it changes the probability of a token with \`logit_bias\`.
`

/** Returns the whole page. */
export function documentOf(results: readonly Result[]): string {
  const reasons: string[] = []
  const tables = [...new Set(results.map(({ table }) => table))]
  const sections = tables.map((table) =>
    sectionOf(
      table,
      results.filter((result) => result.table === table),
      reasons,
    ),
  )
  const messages = reasons.map((reason, index) => `${index + 1}. ${reason.replace(/\.?$/, '.')}`)
  return [INTRODUCTION, ...sections, '## Messages of refused requests\n', ...messages, ''].join(
    '\n',
  )
}

function sectionOf(table: string, columns: readonly Result[], reasons: string[]): string {
  const packages = [...new Set(columns.flatMap((column) => column.packages))]
  const notes = columns.flatMap(({ note }) => (note ? [note] : []))
  const checks = Object.keys(ROWS).filter((row) => columns.some(({ outcomes }) => row in outcomes))
  const rows = checks.map((check) => {
    const cells = columns.map(({ outcomes }) => cellOf(outcomes[check], reasons))
    return rowOf([ROWS[check] ?? check, ...cells])
  })
  return [
    `## ${table}\n`,
    ...(packages.length > 0 ? [`${packages.map(versionOf).join(', ')}.\n`] : []),
    ...notes.map((note) => `${note}\n`),
    rowOf(['', ...columns.map(({ title }) => title)]),
    rowOf(['', ...columns.map(() => '')].map(() => '---')),
    ...rows,
    '',
  ].join('\n')
}

const rowOf = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

/** Returns a cell. Equal reasons share a number on the whole page. */
function cellOf(outcome: Outcome | undefined, reasons: string[]): string {
  if (!outcome) return '-'
  if (outcome.outcome !== 'refused') return outcome.outcome
  const known = reasons.indexOf(outcome.reason)
  return `refused (${known < 0 ? reasons.push(outcome.reason) : known + 1})`
}

/** Returns the name and version of an installed package. For an alias, the name is the real one. */
function versionOf(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  const { name: real, version } = JSON.parse(readFileSync(file, 'utf8')) as {
    name: string
    version: string
  }
  return `\`${real}\` ${version}`
}
