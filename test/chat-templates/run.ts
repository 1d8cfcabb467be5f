/**
 * `npm run test:chat-templates -- --dir DIR` renders conversations with each chat template of a
 * folder, and compares the prompts with those of Python. DIR has files `*.jinja`, and is not part of
 * the repository. It needs `python3` with jinja2.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compare } from './compare.ts'
import { BODIES } from './conversations.ts'
import { Python } from './python.ts'

const USAGE = 'npm run test:chat-templates -- --dir DIR [--only TEXT] [--show COUNT]'

/** Returns the place where two texts diverge, with some text around it. */
function showDifference(ours: string, expected: string): string {
  let at = 0
  while (at < ours.length && ours[at] === expected[at]) at += 1
  const cut = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 60), at + 160))
  return `    ours   ${cut(ours)}\n    python ${cut(expected)}`
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      only: { type: 'string', default: '' },
      show: { type: 'string', default: '20' },
    },
  })
  if (values.dir === undefined) throw new Error(`--dir is missing. Usage: ${USAGE}`)
  const { dir } = values
  const names = readdirSync(dir)
    .filter((name) => name.endsWith('.jinja') && name.includes(values.only))
    .sort()
  const python = new Python()
  const counts = new Map<string, number>()
  let shown = 0
  let others = 0
  for (const name of names) {
    const template = readFileSync(join(dir, name), 'utf8')
    for (const [kind, body] of Object.entries(BODIES)) {
      const { outcome, added, isSame, ours, expected } = await compare(python, template, body)
      if (!isSame) {
        others += 1
        console.log(`${name}, ${kind}: the interpreter differs`)
      }
      const what = [outcome, added.join(' and ')].join(' ').trim()
      counts.set(what, (counts.get(what) ?? 0) + 1)
      if (!SHOWN.has(outcome) || shown >= Number(values.show)) continue
      shown += 1
      console.log(`${name}, ${kind}: ${what}\n${showDifference(ours, expected)}`)
    }
  }
  python.close()
  const total = names.length * Object.keys(BODIES).length
  const count = (outcome: string): number =>
    [...counts].reduce((sum, [what, number]) => sum + (what.startsWith(outcome) ? number : 0), 0)
  const added = count('equal but for')
  const rendered = count('equal') + count('different') + count('refused')
  const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(2)} %`
  console.log(
    `${names.length} templates, ${Object.keys(BODIES).length} conversations, ${total} prompts`,
  )
  for (const [what, number] of [...counts].sort(([, a], [, b]) => b - a))
    console.log(`  ${what}: ${number}`)
  console.log(`The interpreter differs from Python in ${others} of ${total} renderings`)
  console.log(
    `${percent(count('equal'), rendered)} of Python's prompts are equal, or equal but for parts that ` +
      `the template leaves out; without those ${added}, ` +
      `${percent(count('equal') - added, rendered - added)} are equal`,
  )
}

/** Outcomes that are shown with the place where the prompts differ. */
const SHOWN: ReadonlySet<string> = new Set(['different', 'refused'])

await main()
