/**
 * Ours beside transformers.js and wllama on WASM, with a model of 135 M parameters. All sides of a part
 * are open at once and take turns, so that a machine that slows down favors none. Each part takes
 * minutes and can be run alone.
 */
import type { Site } from '../support/site.ts'
import { openOnWasm } from './compare.ts'
import { defaultFormat } from './default-format.ts'
import { atLeast, type Figure, median, printTable, reported } from './figure.ts'
import type { GgufFormat, OnnxFormat } from './models/shapes.ts'
import type { OpenSide } from './open-side.ts'
import type { Run, SideName, Task } from './side.ts'

interface Peer {
  label: string
  side: SideName
  format: OnnxFormat | GgufFormat
}

const OURS = 'inorigin'
const OURS_Q8: Peer = { label: `${OURS}, q8`, side: 'inorigin', format: 'q8' }
const OURS_Q4: Peer = { label: `${OURS}, q4`, side: 'inorigin', format: 'q4' }
/** The default of transformers.js on WASM. */
const THEIRS: Peer = { label: 'transformers.js, q8', side: 'transformers', format: 'q8' }
const THEIRS_Q4: Peer = { label: 'transformers.js, q4', side: 'transformers', format: 'q4' }
const WLLAMA: Peer = { label: 'wllama, Q4_0', side: 'wllama', format: 'q4_0' }
const WLLAMA_Q8: Peer = { label: 'wllama, Q8_0', side: 'wllama', format: 'q8_0' }
/** Sides that take up to a minute for a long prompt, which is measured once. */
const SLOW = [THEIRS_Q4, WLLAMA].map(({ label }) => label)
/** What the catalog chooses where a hub has both formats. */
const CHOSEN = defaultFormat(['q8', 'q4']) === 'q8' ? OURS_Q8 : OURS_Q4

const SHORT = 64
const LONG = 512
const HISTORY = 1_000
/** Tokens that a second turn adds. */
const MORE = 24
/** Tokens of one decode. */
const ANSWER = 16
/** Rounds by tokens of the prompt, so that a part takes less than 8 minutes on a slow machine. */
const ROUNDS = { [SHORT]: 5, [LONG]: 3, [HISTORY]: 2 } as const

/** The parts by name. `npm run bench -- --peers` runs all of them. */
export const PEER_PARTS: Readonly<Record<string, (site: Site) => Promise<Figure[]>>> = {
  'peers-decode': measureDecode,
  'peers-prefill': measurePrefill,
  'peers-threads': measureThreads,
}

/** Decoding with two threads, at {@link SHORT} and {@link LONG} tokens of context. */
async function measureDecode(site: Site): Promise<Figure[]> {
  const peers = [OURS_Q8, OURS_Q4, THEIRS, THEIRS_Q4, WLLAMA, WLLAMA_Q8]
  return withSides(site, peers, 2, async (sides) => {
    const short = await takeTurns(sides, SHORT)
    const measured = [...sides].filter(([label]) => label !== WLLAMA_Q8.label)
    const long = await takeTurns(new Map(measured), LONG)
    printTable([
      ['tokens/s, 2 threads', `decode at ${SHORT}`, `decode at ${LONG}`, `prefill of ${LONG}`],
      ...[...sides.keys()].map((label) => [
        label,
        rateOf(short, label),
        ...(long.has(label) ? [rateOf(long, label), prefillOf(long, label, LONG)] : []),
      ]),
    ])
    const over = (other: Peer): number =>
      Math.min(...[short, long].map((runs) => ratioOf(runs, CHOSEN, other, ({ rate }) => rate)))
    const note = (other: Peer): string =>
      `${CHOSEN.label} over ${other.label}, the lesser of ${SHORT} and ${LONG} tokens of context, two threads`
    return [
      atLeast('wasm_decode_vs_wllama', over(WLLAMA), 1.5, note(WLLAMA)),
      atLeast('wasm_decode_vs_transformers', over(THEIRS), 1.2, note(THEIRS)),
    ]
  })
}

/** Prompts of {@link LONG} and {@link HISTORY} tokens and a second turn, with two threads. */
async function measurePrefill(site: Site): Promise<Figure[]> {
  return withSides(site, [OURS_Q8, OURS_Q4, THEIRS], 2, async (sides) => {
    const long = await takeTurns(sides, LONG)
    const history = await takeTurns(sides, HISTORY)
    const seconds = await secondTurns(sides)
    const turnsOf = (label: string): string =>
      [firstOf(history, label), find(seconds, label)].map(inSeconds).join(' / ')
    printTable([
      ['2 threads', `prefill of ${LONG}`, `prefill of ${HISTORY}`, `turn 1 / 2 of ${HISTORY}`],
      ...[...sides.keys()].map((label) => [
        label,
        `${prefillOf(long, label, LONG)} tokens/s`,
        `${prefillOf(history, label, HISTORY)} tokens/s`,
        `${turnsOf(label)} s`,
      ]),
    ])
    const speed = ({ first }: Run): number => 1 / first
    const ratios = [long, history].map((runs) => ratioOf(runs, OURS_Q8, THEIRS, speed))
    const each = ratios.map((ratio) => ratio.toFixed(2)).join(' and ')
    return [
      atLeast(
        'wasm_prefill_vs_transformers',
        Math.min(...ratios),
        4,
        `q8, two threads: ${each} at ${LONG} and ${HISTORY} tokens`,
      ),
      reported(
        'wasm_ttft_512_ms',
        firstOf(long, CHOSEN.label),
        `cold prompt of ${LONG} tokens, ${CHOSEN.label}, two threads`,
      ),
    ]
  })
}

/**
 * Resolves with the milliseconds to the first token of a second turn, by label. It continues the last
 * prompt of {@link HISTORY} tokens, which a side with a cache still has.
 */
async function secondTurns(sides: Sides): Promise<Map<string, number>> {
  const milliseconds = new Map<string, number>()
  for (const [label, side] of sides) {
    // Tokens of the same seed begin alike.
    const task = { ...taskOf(HISTORY, ROUNDS[HISTORY] - 1), prompt: HISTORY + MORE }
    const { first } = await side.run(task)
    milliseconds.set(label, first)
    console.log(`${label}: turn 2 ${first.toFixed(0)} ms`)
  }
  return milliseconds
}

/** Decoding with one thread, and ours with two beside it. */
async function measureThreads(site: Site): Promise<Figure[]> {
  return withSides(site, [OURS_Q8, OURS_Q4, THEIRS, WLLAMA], 1, (sides) =>
    withSides(site, [CHOSEN], 2, async (threaded) => {
      const two = `${CHOSEN.label}, two threads`
      const all = new Map([...sides, [two, find(threaded, CHOSEN.label)]])
      const short = await takeTurns(all, SHORT)
      printTable([
        ['tokens/s, 1 thread', `decode at ${SHORT}`],
        ...[...all.keys()].map((label) => [label, rateOf(short, label)]),
      ])
      const ratio = ratioOf(short, { label: two }, CHOSEN, ({ rate }) => rate)
      return [atLeast('wasm_threads2_vs_1', ratio, 1.4, `decode at ${SHORT}, ${CHOSEN.label}`)]
    }),
  )
}

/** A length of prompts. */
type Prompt = keyof typeof ROUNDS
/** Sides by label. */
type Sides = ReadonlyMap<string, OpenSide>
/** Runs by label, one a round. */
type Runs = ReadonlyMap<string, Run[]>

/** Opens the sides, runs each once to warm it up, and closes them in the end. */
async function withSides<T>(
  site: Site,
  peers: readonly Peer[],
  threads: number,
  measure: (sides: Sides) => Promise<T>,
): Promise<T> {
  const sides = new Map<string, OpenSide>()
  try {
    for (const { label, side, format } of peers) {
      const opened = await openOnWasm(site, side, { model: '135M', format, threads })
      sides.set(label, opened)
      await opened.run({ prompt: 8, seed: 1, answer: 4 })
    }
    return await measure(sides)
  } finally {
    for (const side of sides.values()) await side.close()
  }
}

/** Prompts of different rounds share no prefix. */
const taskOf = (prompt: Prompt, round: number): Task => ({
  prompt,
  seed: prompt + 10 * round,
  answer: ANSWER,
})

/** Runs a prompt of that length on each side, and another one in the next round. */
async function takeTurns(sides: Sides, prompt: Prompt): Promise<Runs> {
  const runs = new Map([...sides.keys()].map((label): [string, Run[]] => [label, []]))
  for (let round = 0; round < ROUNDS[prompt]; round += 1) {
    for (const [label, side] of sides) {
      if (round > 0 && prompt > SHORT && SLOW.includes(label)) continue
      const run = await side.run(taskOf(prompt, round))
      find(runs, label).push(run)
      const rate = `${run.rate.toFixed(1)} tokens/s`
      console.log(`${label}: ${rate} after ${prompt}, first token ${run.first.toFixed(0)} ms`)
    }
  }
  return runs
}

function find<T>(byLabel: ReadonlyMap<string, T>, label: string): T {
  const found = byLabel.get(label)
  if (found === undefined) throw new Error(`${label} was not measured.`)
  return found
}

/** Tokens per second of the answers. */
const rateOf = (runs: Runs, label: string): string =>
  median(find(runs, label).map(({ rate }) => rate)).toFixed(1)

/** Milliseconds to the first token. */
const firstOf = (runs: Runs, label: string): number =>
  median(find(runs, label).map(({ first }) => first))

/** Tokens of the prompt per second. */
const prefillOf = (runs: Runs, label: string, tokens: Prompt): string =>
  ((tokens / firstOf(runs, label)) * 1_000).toFixed(0)

const inSeconds = (milliseconds: number): string => (milliseconds / 1_000).toFixed(2)

/** Median of the ratios of the rounds, since both sides of a round met the same machine. */
function ratioOf(
  runs: Runs,
  one: Pick<Peer, 'label'>,
  other: Pick<Peer, 'label'>,
  speed: (run: Run) => number,
): number {
  const [ones, others] = [one, other].map(({ label }) => find(runs, label).map(speed)) as [
    number[],
    number[],
  ]
  return median(others.map((rate, round) => (ones[round] ?? NaN) / rate))
}
