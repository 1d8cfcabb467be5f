/** `docs/conformance.md`, from what was seen. */
import { readFileSync } from 'node:fs'
import { FEATURES, REQUESTS } from './features.ts'
import type { Outcome, Result } from './run.ts'

export const DOCUMENT = new URL('../../docs/conformance.md', import.meta.url).pathname

const ROWS: Readonly<Record<string, string>> = { ...FEATURES, ...REQUESTS }

const INTRODUCTION = `# Conformance

What existing clients can do when they are pointed at a page's own origin. Each cell is a check that ran in
Chromium, through the service worker, with the embedded model \`@inorigin/guide\`. \`npm test\` runs all of them, and
fails where this page says something else; \`npm run conformance\` runs them alone, and \`npm run conformance --
--write\` writes this page anew.

- **pass**: the client does it as its own documentation says, and what it gives is right: calls are of the tools that
  were offered, with arguments of their schemas; ends are what they were; tokens add up; errors have the classes that
  the client has for them, and are not tried again in vain.
- **refused**: the server says no, with a 400 or 404 that names what it does not do. The numbers lead to its words.
- **-**: the client has no way to ask for it, or does not send it.

Every stream that a client received was also checked event by event against a strict grammar, every error against the
one body that all clients read. What the model likes to say plays no part: where a check needs a call, a thought, an
end or a long answer, the chance of a token is raised or lowered by \`logit_bias\`.
`

/** The whole page. */
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
  const words = reasons.map((reason, index) => `${index + 1}. ${reason.replace(/\.?$/, '.')}`)
  return [INTRODUCTION, ...sections, '## What is refused, in its own words\n', ...words, ''].join(
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

/** The same reason has the same number throughout. */
function cellOf(outcome: Outcome | undefined, reasons: string[]): string {
  if (!outcome) return '-'
  if (outcome.outcome !== 'refused') return outcome.outcome
  const known = reasons.indexOf(outcome.reason)
  return `refused (${known < 0 ? reasons.push(outcome.reason) : known + 1})`
}

/** Of what is installed; an alias is told by the name it stands for. */
function versionOf(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  const { name: real, version } = JSON.parse(readFileSync(file, 'utf8')) as {
    name: string
    version: string
  }
  return `\`${real}\` ${version}`
}
