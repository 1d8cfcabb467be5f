/**
 * `npm run test:chat-templates -- --dir DIR` renders conversations with each chat template of a
 * folder, and compares the prompts with those of Python. DIR has files `*.jinja`, and is not part of
 * the repository. It needs `python3` with jinja2.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parse, render, TemplateError, toValue } from '../../src/engine/jinja/index.ts'
import { messageOf } from '../../src/error.ts'
import { BODIES, type Body } from './conversations.ts'
import { preparePrompt } from './prompt.ts'
import { Python, toVariables, type Variables } from './python.ts'

const USAGE = 'npm run test:chat-templates -- --dir DIR [--only TEXT] [--show COUNT]'

/** How our prompt and Python's relate. */
type Outcome =
  | 'equal'
  | 'different'
  /** Python has a prompt, but we refuse the conversation. */
  | 'refused'
  /** Neither has a prompt. */
  | 'both refuse'
  /** Python's rendering fails, but we change the conversation so that it does not. */
  | 'only ours'

interface Comparison {
  outcome: Outcome
  /** `true` if the interpreter renders what Python renders of the same variables. */
  isSame: boolean
  ours: string
  expected: string
}

/** Text that marks the end of a prefilled answer in Python, as in transformers. */
const CONTINUE = 'CONTINUE_FINAL_MESSAGE_TAG '

async function compare(python: Python, template: string, body: Body): Promise<Comparison> {
  const expected = new Set<string>()
  let failure = ''
  let isSame = true
  for (const variables of toVariables(body, CONTINUE)) {
    const result = await python.render(template, variables)
    isSame &&= renderDirectly(template, variables) === (result.text ?? null)
    if (result.text === undefined) failure ||= `${result.error}: ${result.message}`
    else expected.add(cutAtMark(result.text, variables))
  }
  const [first = failure] = expected
  try {
    const ours = await preparePrompt(template, body)
    const outcome = expected.size === 0 ? 'only ours' : expected.has(ours) ? 'equal' : 'different'
    return { outcome, isSame, ours, expected: first }
  } catch (thrown) {
    const outcome = expected.size === 0 ? 'both refuse' : 'refused'
    return { outcome, isSame, ours: messageOf(thrown), expected: first }
  }
}

/** Returns the text that the interpreter renders of the variables of Python; `null` if it fails. */
function renderDirectly(template: string, variables: Variables): string | null {
  const values = Object.entries(variables).map(([name, value]) => [name, toValue(value)] as const)
  try {
    return render(parse(template), values, { characters: 100_000, messages: 100 })
  } catch (thrown) {
    if (thrown instanceof TemplateError) return null
    throw thrown
  }
}

/** Returns the text up to the end of a prefilled answer, if there is one. */
function cutAtMark(text: string, { continues }: Variables): string {
  if (!continues) return text
  const at = text.lastIndexOf(CONTINUE.trim())
  if (at < 0) return text
  return text.startsWith(CONTINUE, at) ? text.slice(0, at) : text.slice(0, at).trimEnd()
}

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
  const counts = new Map<Outcome, number>()
  let shown = 0
  let others = 0
  for (const name of names) {
    const template = readFileSync(join(dir, name), 'utf8')
    for (const [kind, body] of Object.entries(BODIES)) {
      const { outcome, isSame, ours, expected } = await compare(python, template, body)
      if (!isSame) {
        others += 1
        console.log(`${name}, ${kind}: the interpreter differs`)
      }
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
      if ((outcome === 'different' || outcome === 'refused') && shown < Number(values.show)) {
        shown += 1
        console.log(`${name}, ${kind}: ${outcome}\n${showDifference(ours, expected)}`)
      }
    }
  }
  python.close()
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const count = (outcome: Outcome): number => counts.get(outcome) ?? 0
  const rendered = count('equal') + count('different') + count('refused')
  console.log(
    `${names.length} templates, ${Object.keys(BODIES).length} conversations, ${total} prompts`,
  )
  for (const [outcome, number] of counts) console.log(`  ${outcome}: ${number}`)
  console.log(`The interpreter differs from Python in ${others} of ${total} renderings`)
  console.log(`${((100 * count('equal')) / rendered).toFixed(2)} % of Python's prompts are equal`)
}

await main()
