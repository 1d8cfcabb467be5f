/** Ours beside transformers.js and wllama on WASM: a model of 135 M parameters, in turns. */
import type { Site } from '../support/site.ts'
import { openOnWasm, type OpenSide } from './compare.ts'
import { defaultFormat } from './default-format.ts'
import { atLeast, type Figure, median, printTable, reported } from './figure.ts'
import type { GgufFormat, OnnxFormat } from './models/shapes.ts'
import type { SideName } from './side.ts'

interface Peer {
  label: string
  side: SideName
  format: OnnxFormat | GgufFormat
  /** `true` if only short prompts are measured, to save minutes. Default: `false`. */
  short?: boolean
}

const OURS = 'inorigin'
const PEERS: readonly Peer[] = [
  { label: `${OURS}, q8`, side: 'inorigin', format: 'q8' },
  { label: `${OURS}, q4`, side: 'inorigin', format: 'q4' },
  { label: 'transformers.js, q8', side: 'transformers', format: 'q8' },
  { label: 'transformers.js, q4', side: 'transformers', format: 'q4' },
  { label: 'wllama, Q4_0', side: 'wllama', format: 'q4_0' },
  { label: 'wllama, Q8_0', side: 'wllama', format: 'q8_0', short: true },
]
/** The default of transformers.js on WASM is q8. */
const THEIRS = 'transformers.js, q8'
const WLLAMA = 'wllama, Q4_0'

const SHORT = 64
const LONG = 512
const HISTORY = 1_000
/** Tokens that a second turn adds. */
const MORE = 24
/** Tokens of one decode. */
const ANSWER = 16
/** Rounds of short prompts; the others take up to a minute and are measured once. */
const ROUNDS = 3

/** Figures of one side. Lists have one number a round. */
interface Measured {
  /** Tokens per second after a prompt of that length. */
  decode: Record<typeof SHORT | typeof LONG, number[]>
  /** Milliseconds to the first token of a cold prompt of {@link LONG} tokens. */
  first: number
  /** Milliseconds to the first token of the first and the second turn. */
  turns: [number, number] | null
}

type Results = ReadonlyMap<string, Measured>

/** Prints the table and returns the ratios. */
export async function measurePeers(site: Site): Promise<Figure[]> {
  const two = await measureWith(site, 2)
  const one = await measureWith(site, 1)
  const rate = ({ decode }: Measured, context: typeof SHORT | typeof LONG) =>
    median(decode[context])
  const both = (show: (measured: Measured) => number, label: string): string =>
    [one, two].map((results) => show(find(results, label)).toFixed(1)).join(' / ')
  const longCells = (label: string): string[] => [
    both((measured) => rate(measured, LONG), label),
    both(({ first }) => (LONG / first) * 1_000, label),
    ...turnsOf(find(two, label)),
  ]
  printTable([
    [
      'tokens/s, 1 / 2 threads',
      `decode at ${SHORT}`,
      `decode at ${LONG}`,
      `prefill of ${LONG}`,
      `prefill of ${HISTORY}, 2 threads`,
      `turn 1 / 2 of ${HISTORY}, 2 threads`,
    ],
    ...PEERS.map(({ label, short }) => [
      label,
      both((measured) => rate(measured, SHORT), label),
      ...(short ? [] : longCells(label)),
    ]),
  ])
  return compare(one, two)
}

function turnsOf({ turns }: Measured): string[] {
  if (!turns) return ['', '']
  const [first, second] = turns.map((milliseconds) => milliseconds / 1_000) as [number, number]
  return [(HISTORY / first).toFixed(0), `${first.toFixed(2)} / ${second.toFixed(2)} s`]
}

function find(results: Results, label: string): Measured {
  const found = results.get(label)
  if (!found) throw new Error(`${label} was not measured.`)
  return found
}

function compare(one: Results, two: Results): Figure[] {
  const chosen = `${OURS}, ${defaultFormat(['q8', 'q4'])}`
  const ours = find(two, chosen)
  const [theirs, wllama] = [find(two, THEIRS), find(two, WLLAMA)]
  const decode = (a: Measured, b: Measured): number =>
    Math.min(...([SHORT, LONG] as const).map((at) => median(a.decode[at]) / median(b.decode[at])))
  const note = `the lesser of ${SHORT} and ${LONG} tokens of context, two threads`
  const same = find(two, `${OURS}, q8`)
  const prefill = Math.min(theirs.first / same.first, firstTurn(theirs) / firstTurn(same))
  const threads = median(ours.decode[SHORT]) / median(find(one, chosen).decode[SHORT])
  return [
    atLeast(
      'wasm_decode_vs_wllama',
      decode(ours, wllama),
      1.5,
      `${chosen} over ${WLLAMA}, ${note}`,
    ),
    atLeast(
      'wasm_decode_vs_transformers',
      decode(ours, theirs),
      1.2,
      `${chosen} over ${THEIRS}, ${note}`,
    ),
    atLeast(
      'wasm_prefill_vs_transformers',
      prefill,
      4,
      `q8, the lesser of ${LONG} and ${HISTORY} tokens`,
    ),
    atLeast('wasm_threads2_vs_1', threads, 1.4, `decode, ${chosen}`),
    reported(
      'wasm_ttft_512_ms',
      ours.first,
      `cold prompt of ${LONG} tokens, ${chosen}, two threads`,
    ),
  ]
}

const firstTurn = ({ turns }: Measured): number => turns?.[0] ?? NaN

/** All sides are open at once and take turns, so that a machine that slows down favors none. */
async function measureWith(site: Site, threads: number): Promise<Results> {
  const sides: OpenSide[] = []
  const results = new Map<string, Measured>()
  try {
    for (const { side, format } of PEERS) {
      sides.push(await openOnWasm(site, side, { model: '135M', format, threads }))
    }
    type Measure = (side: OpenSide, label: string) => Promise<void>
    const each = async (measure: Measure, prompt: 'short' | 'long' = 'short'): Promise<void> => {
      for (const [index, { label, short }] of PEERS.entries()) {
        if (prompt === 'short' || !short) await measure(sides[index] as OpenSide, label)
      }
    }
    const report = (label: string, text: string): void =>
      console.log(`${label}, threads ${threads}: ${text}`)
    await each(async (side, label) => {
      // The first run warms up and is not counted.
      await side.run({ prompt: 8, seed: 1, answer: 4 })
      results.set(label, { decode: { [SHORT]: [], [LONG]: [] }, first: NaN, turns: null })
    })
    for (let round = 0; round < ROUNDS; round += 1) {
      await each(async (side, label) => {
        const { rate } = await side.run({ prompt: SHORT, seed: 10 + round, answer: ANSWER })
        find(results, label).decode[SHORT].push(rate)
        report(label, `decode at ${SHORT} ${rate.toFixed(1)}`)
      })
    }
    await each(async (side, label) => {
      const { rate, first } = await side.run({ prompt: LONG, seed: 20, answer: ANSWER })
      const measured = find(results, label)
      measured.decode[LONG].push(rate)
      measured.first = first
      report(label, `decode at ${LONG} ${rate.toFixed(1)}, first token ${first.toFixed(0)} ms`)
    }, 'long')
    // One thread would take minutes.
    if (threads > 1) {
      await each(async (side, label) => {
        const task = { prompt: HISTORY, seed: 30, answer: 2 }
        const [one, two] = await side.order({ type: 'turns', task, more: MORE })
        find(results, label).turns = [one.first, two.first]
        report(label, `turns ${one.first.toFixed(0)} and ${two.first.toFixed(0)} ms`)
      }, 'long')
    }
    return results
  } finally {
    for (const side of sides) await side.close()
  }
}
