/** Load, prefill, decode, second turns and streams at once: ours beside transformers.js. */
import type { Site } from '../support/site.ts'
import { prepareModel } from './compare.ts'
import { median, printTable } from './figure.ts'
import { openSide, type OpenSide } from './open-side.ts'
import type { Run, SideName, Task } from './side.ts'
import type { Work } from './work.ts'

export type Device = 'wasm' | 'webgpu'

/** How much is measured: a GPU made of software takes seconds for what others do in milliseconds. */
export interface Effort {
  rounds: number
  /** Tokens of one decode. */
  answer: number
}

/** What one side did. */
export interface Measured {
  /** Milliseconds. */
  load: number
  /** Tokens per second of a decode, by tokens of context. */
  decode: Record<number, number>
  /** What a token of those asks of the GPU. */
  work: Record<number, Work>
  /** Tokens per second of a prompt of 512. */
  prefill: number
  /** Time to the first token of a second turn over that of the first, with 1,000 tokens of history. */
  turn2: number
  /** Four streams at once over one after the other. */
  concurrent: {
    /** Tokens per second. */
    rate: number
    /** Dispatches. */
    dispatches: number
  }
  /** What was written, to be the same on both sides. */
  texts: string[]
}

/** The model that is compared, as it is opened. */
export const SMALL = { model: 'small', format: 'fp32', threads: 1 } as const
const CONTEXTS = [64, 512, 2048]
const HISTORY = 1_000
/** Tokens that a second turn adds. */
const MORE = 24
const STREAMS = 4

export async function measureSide(
  site: Site,
  name: SideName,
  device: Device,
  { rounds, answer }: Effort,
): Promise<Measured> {
  prepareModel('small', 'fp32')
  const side = await openSide(site, name)
  try {
    const load = await side.order({ type: 'open', ...SMALL, device })
    const once = (prompt: number, seed: number): Promise<Run> => side.run({ prompt, seed, answer })
    const decode: Record<number, number> = {}
    const work: Record<number, Work> = {}
    const texts: string[] = []
    const firsts: number[] = []
    for (const context of CONTEXTS) {
      // The first run of a length may still compile something.
      if (rounds > 1) await once(context, 1_000)
      const runs: Run[] = []
      for (let round = 0; round < rounds; round += 1) runs.push(await once(context, round))
      decode[context] = median(runs.map(({ rate }) => rate))
      if (runs[0]) work[context] = runs[0].work
      texts.push(...runs.map(({ text }) => text))
      if (context === 512) firsts.push(...runs.map(({ first }) => first))
    }
    return {
      load,
      decode,
      work,
      texts,
      prefill: (512 / median(firsts)) * 1000,
      turn2: await secondTurns(side, rounds),
      concurrent: await atOnce(side, rounds, answer),
    }
  } finally {
    await side.close()
  }
}

async function secondTurns(side: OpenSide, rounds: number): Promise<number> {
  const ratios: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const task: Task = { prompt: HISTORY, seed: 100 + round, answer: 2 }
    const [one, two] = await side.order({ type: 'turns', task, more: MORE })
    ratios.push(two.first / one.first)
  }
  return median(ratios)
}

/** Short prompts, so that what is compared is the writing. */
async function atOnce(
  side: OpenSide,
  rounds: number,
  answer: number,
): Promise<Measured['concurrent']> {
  const ratios: number[] = []
  let dispatches = 0
  for (let round = 0; round <= rounds; round += 1) {
    const tasks = (seed: number): Task[] =>
      Array.from({ length: STREAMS }, (_, index) => ({ prompt: 16, seed: seed + index, answer }))
    const alone = await side.order({ type: 'run', tasks: tasks(200 + 10 * round), together: false })
    const together = await side.order({
      type: 'run',
      tasks: tasks(600 + 10 * round),
      together: true,
    })
    // The first round may still compile something.
    if (round > 0) ratios.push(alone.milliseconds / together.milliseconds)
    dispatches = together.work.dispatches / alone.work.dispatches
  }
  return { rate: median(ratios), dispatches }
}

export function printComparison(device: string, ours: Measured, theirs: Measured): void {
  const row = (what: string, one: number, other: number, unit: string, better = one / other) => [
    `${device} ${what}`,
    one.toFixed(1),
    other.toFixed(1),
    unit,
    `${better.toFixed(2)} x`,
  ]
  printTable([
    ['', 'inorigin', 'transformers.js', '', 'ours is'],
    row('load', ours.load, theirs.load, 'ms', theirs.load / ours.load),
    row('prefill of 512', ours.prefill, theirs.prefill, 'tokens/s'),
    ...CONTEXTS.map((context) =>
      row(
        `decode at ${context}`,
        ours.decode[context] ?? 0,
        theirs.decode[context] ?? 0,
        'tokens/s',
      ),
    ),
    row('turn 2 over turn 1', ours.turn2 * 100, theirs.turn2 * 100, '%', theirs.turn2 / ours.turn2),
    row('4 streams over 1', ours.concurrent.rate * 100, theirs.concurrent.rate * 100, '%'),
    ...(device === 'webgpu' ? workRows(ours, theirs) : []),
  ])
}

/** Less is better. */
function workRows(ours: Measured, theirs: Measured): string[][] {
  const row = (what: string, one: number, other: number, unit: string): string[] => [
    `webgpu ${what}`,
    one.toFixed(1),
    other.toFixed(1),
    unit,
    `${(other / one).toFixed(2)} x`,
  ]
  const rows = CONTEXTS.flatMap((context) => {
    const [one, other] = [ours.work[context], theirs.work[context]]
    if (!one || !other) return []
    const moved = ({ cleared, copied }: Work): number => (cleared + copied) / 1e6
    return [
      row(`dispatches at ${context}`, one.dispatches, other.dispatches, 'a token'),
      row('their workgroups', one.workgroups, other.workgroups, 'a token'),
      row('cleared, copied', moved(one), moved(other), 'MB a token'),
    ]
  })
  const [one, other] = [ours.concurrent.dispatches, theirs.concurrent.dispatches]
  return [...rows, row('dispatches of 4 streams', one * 100, other * 100, '% of one by one')]
}
