/**
 * How far each form of a model with real weights keeps to the same model in 32 bits, and how fast it
 * is: ours, wllama and transformers.js on WASM with two threads. `tools/exporters/fidelity.py` makes
 * the folder. The answers of 32 bits are forced, so that every form chooses after the same tokens, and
 * computes them one at a time, as when it writes. All forms are open at once and take turns.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Site } from '../support/site.ts'
import { openPrepared } from './compare.ts'
import { type Figure, median, printTable, reported } from './figure.ts'
import { type Format, REAL_MODEL } from './models/shapes.ts'
import type { OpenSide } from './open-side.ts'
import type { Given, ReferenceAnswer, Run, SideName } from './side.ts'

interface Form {
  /** Name in `--sides`, before the format. */
  name: 'ours' | 'wllama' | 'transformers'
  side: SideName
  format: Format
  /** Default: `fast`. */
  precision?: 'exact'
}

const FORMS: readonly Form[] = [
  ...(['q8b32', 'q8', 'q4', 'fp32'] as const).map((format): Form => ({
    name: 'ours',
    side: 'inorigin',
    format,
  })),
  { name: 'ours', side: 'inorigin', format: 'q8b32', precision: 'exact' },
  ...(['q4_1', 'q8_0'] as const).map((format): Form => ({
    name: 'wllama',
    side: 'wllama',
    format,
  })),
  ...(['q8', 'q4'] as const).map((format): Form => ({
    name: 'transformers',
    side: 'transformers',
    format,
  })),
]

const THREADS = 2
/** Speed is measured before every tenth prompt, with a prompt of {@link CONTEXT} tokens. */
const PROMPTS_PER_ROUND = 10
const CONTEXT = 512
/** Tokens that are written then. */
const ANSWER = 24

/** `reference.json`. */
interface Reference {
  answers: readonly ReferenceAnswer[]
  /** Prompts of {@link CONTEXT} tokens. */
  speed: readonly Given[]
}

/** What was measured of a form. */
interface Measured {
  label: string
  side: OpenSide
  /** Tokens of answers, and those that are the best of this form too. */
  positions: number
  same: number
  /** Of each answer, the share before the first token that is not. */
  shares: number[]
  /** Margins in 32 bits of tokens that are not. */
  lost: number[]
  /** Tokens per second. */
  decode: number[]
  prefill: number[]
}

export interface FidelityOptions {
  /** Folder that `tools/exporters/fidelity.py` made. */
  folder: string
  /** Names such as `ours` or `wllama/q4_1`. Default: all. */
  sides?: readonly string[]
  /** How many of the prompts. Default: all. */
  prompts?: number
}

/** Measures all forms, or those of the sides, and prints a table. */
export async function measureFidelity(
  site: Site,
  { folder, sides, prompts }: FidelityOptions,
): Promise<Figure[]> {
  const labelOf = ({ name, format, precision }: Form): string =>
    `${name}/${format}${precision ? `-${precision}` : ''}`
  const forms = FORMS.filter(
    (form) => sides?.some((side) => side === form.name || side === labelOf(form)) ?? true,
  )
  if (forms.length === 0) {
    throw new Error(`--sides must name some of ${FORMS.map(labelOf).join(', ')}.`)
  }
  const { answers, speed } = JSON.parse(
    readFileSync(join(folder, 'reference.json'), 'utf8'),
  ) as Reference
  const [first] = answers
  if (!first) throw new Error(`${folder}/reference.json has no answers.`)
  const warmUp: Given = { tokens: first.prompt, text: first.texts[0] ?? '' }
  const all: Measured[] = []
  try {
    for (const form of forms) {
      const { side: name, format, precision } = form
      const side = await openPrepared(site, name, {
        model: REAL_MODEL,
        format,
        threads: THREADS,
        precision,
      })
      const counts = { positions: 0, same: 0, shares: [], lost: [], decode: [], prefill: [] }
      all.push({ label: labelOf(form), side, ...counts })
      console.log(`${labelOf(form)} is loaded`)
      await write(side, warmUp, 4)
      console.log(`${labelOf(form)} writes`)
    }
    for (const [at, answer] of answers.slice(0, prompts).entries()) {
      const given = at % PROMPTS_PER_ROUND === 0 ? speed[at / PROMPTS_PER_ROUND] : undefined
      if (given) for (const form of all) await measureSpeed(form, given)
      for (const form of all) await force(form, answer)
      // A run takes long, and a peer may fail in the middle: so each line has all until then.
      const soFar = all.map(
        ({ label, same, positions, shares }) =>
          `${label} ${percent(same, positions)}, share ${mean(shares).toFixed(2)}`,
      )
      console.log(`${at + 1}: ${soFar.join('; ')}`)
    }
  } finally {
    for (const { side } of all) await side.close()
  }
  printTable([
    [
      `${all[0]?.positions} tokens of ${all[0]?.shares.length} answers`,
      'same next token',
      'share until it differs',
      'largest margin lost',
      `decode at ${CONTEXT}`,
      `prefill of ${CONTEXT}`,
    ],
    ...all.map(({ label, positions, same, shares, lost, decode, prefill }) => [
      label,
      percent(same, positions),
      mean(shares).toFixed(2),
      Math.max(0, ...lost).toFixed(2),
      median(decode).toFixed(1),
      median(prefill).toFixed(0),
    ]),
  ])
  return all.flatMap(({ label, positions, same, shares, decode, prefill }) => {
    const name = `fidelity_${label.replace('/', '_')}`
    return [
      reported(`${name}_same`, same / positions, `next token as in 32 bits, ${positions} tokens`),
      reported(`${name}_share`, mean(shares), `of a greedy answer, ${shares.length} answers`),
      reported(`${name}_decode`, median(decode), `tokens/s at ${CONTEXT}, ${THREADS} threads`),
      reported(`${name}_prefill`, median(prefill), `tokens/s of ${CONTEXT}, ${THREADS} threads`),
    ]
  })
}

/** Compares the tokens that a form finds best with those of 32 bits. */
async function force(form: Measured, reference: ReferenceAnswer): Promise<void> {
  const { answer, margins } = reference
  const best = await form.side.order({ type: 'force', reference })
  if (best.length !== answer.length) {
    throw new Error(`${form.label} computed ${best.length} tokens of ${answer.length}.`)
  }
  const known = answer.flatMap((_, at) => (best[at] === null ? [] : [at]))
  const different = known.filter((at) => best[at] !== answer[at])
  form.positions += known.length
  form.same += known.length - different.length
  // Up to that token, the form would have written the same.
  form.shares.push((different[0] ?? answer.length) / answer.length)
  form.lost.push(...different.map((at) => margins[at] ?? 0))
}

async function measureSpeed({ label, side, decode, prefill }: Measured, given: Given) {
  const { first, rate } = await write(side, given, ANSWER)
  // An answer of one token has no rate.
  if (Number.isFinite(rate)) decode.push(rate)
  prefill.push((given.tokens.length / first) * 1_000)
  console.log(`${label}: ${rate.toFixed(1)} tokens/s, first token after ${first.toFixed(0)} ms`)
}

const write = (side: OpenSide, given: Given, answer: number): Promise<Run> =>
  side.run({ prompt: 0, seed: 0, given, answer })

const percent = (part: number, whole: number): string => `${((part / whole) * 100).toFixed(1)} %`

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length
