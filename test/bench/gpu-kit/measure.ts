/** Measures one side with a model. */
import { median } from '../figure.ts'
import type { OpenSide } from '../open-side.ts'
import type { Run, Task } from '../side.ts'
import { type Effort, type Entry, MORE, STREAM_PROMPT, STREAMS } from './plan.ts'

/** Answers after prompts of one length. */
export interface Decode {
  /** Tokens per second after the first token: the median, and each round. */
  rate: number
  rates: number[]
  /** Milliseconds to the first token: the median, and each round. */
  first: number
  firsts: number[]
  /** Dispatches per token after the first. 0 if the side dispatches in a thread of its own. */
  dispatches: number
  /** The texts of the rounds. Sides with the same weights write the same ones, but for near ties. */
  texts: string[]
}

/** What was measured of an entry. What failed is absent, and named in `errors`. */
export interface Row extends Entry {
  /** Milliseconds until the model answers, in a new browser and again in the same one. */
  loads?: [first: number, second: number]
  /** By tokens of the prompt. */
  decode: Record<number, Decode>
  /** Milliseconds to the first token of two turns. */
  turns?: [first: number, second: number]
  /** Several answers at once. */
  streams?: {
    /** Their tokens per second together, over those of one after the other. */
    ratio: number
    /** Tokens per second, all together. */
    rate: number
  }
  errors: string[]
}

/** Milliseconds after which an order of a side counts as failed. */
const PATIENCE_MS = 240_000

/**
 * Measures an entry with sides that `open` opens in one browser, which the caller closes. It resolves
 * with what could be measured, and calls `onPart` after each part.
 */
export async function measureEntry(
  entry: Entry,
  effort: Effort,
  open: () => Promise<OpenSide>,
  onPart: (row: Row, part: string) => void,
): Promise<Row> {
  const row: Row = { ...entry, decode: {}, errors: [] }
  let hangs = false
  const attempt = async (part: string, work: () => Promise<void>): Promise<void> => {
    if (hangs) return
    try {
      await inTime(work(), () => (hangs = true))
      onPart(row, part)
    } catch (error) {
      row.errors.push(`${part}: ${String(error).slice(0, 500)}`)
      onPart(row, `${part} failed`)
    }
  }
  const side = await attemptLoads(row, { ...entry, threads: effort.threads }, open, attempt)
  if (!side) return row
  for (const context of effort.contexts)
    await attempt(`decode at ${context}`, async () => {
      row.decode[context] = await decodeAfter(side, context, effort)
    })
  await attempt('second turn', async () => {
    row.turns = await takeTurns(side, effort)
  })
  // Last, since not every side can, and one that fails may stay busy.
  await attempt('streams', async () => {
    row.streams = await runTogether(side, effort)
  })
  return row
}

/** Loads the model twice. Resolves with the second side, or with `null` if one failed. */
async function attemptLoads(
  row: Row,
  { model, format, drafts, device = 'webgpu', threads }: Entry & Pick<Effort, 'threads'>,
  open: () => Promise<OpenSide>,
  attempt: (part: string, work: () => Promise<void>) => Promise<void>,
): Promise<OpenSide | null> {
  let side: OpenSide | null = null
  const opening = {
    type: 'open',
    model,
    format,
    device,
    threads,
    drafts,
  } as const
  await attempt('loads', async () => {
    const one = await open()
    const first = await one.order(opening)
    await one.close()
    const other = await open()
    row.loads = [first, await other.order(opening)]
    side = other
  })
  return side
}

async function decodeAfter(
  side: OpenSide,
  prompt: number,
  { rounds, answer }: Effort,
): Promise<Decode> {
  // The first run of a length may still compile something.
  if (rounds > 1) await side.run({ prompt, seed: 1_000, answer: 8 })
  const runs: Run[] = []
  // Prompts of different seeds share no prefix.
  for (let seed = 0; seed < rounds; seed += 1) runs.push(await side.run({ prompt, seed, answer }))
  const rates = runs.map(({ rate }) => rate)
  const firsts = runs.map(({ first }) => first)
  return {
    rate: median(rates),
    rates,
    first: median(firsts),
    firsts,
    dispatches: median(runs.map(({ work }) => work.dispatches)),
    texts: runs.map(({ text }) => text),
  }
}

async function takeTurns(side: OpenSide, { history }: Effort): Promise<[number, number]> {
  const task: Task = { prompt: history, seed: 100, answer: 2 }
  const [one, two] = await side.order({ type: 'turns', task, more: MORE })
  return [one.first, two.first]
}

async function runTogether(
  side: OpenSide,
  { rounds, answer }: Effort,
): Promise<NonNullable<Row['streams']>> {
  const run = async (seed: number, together: boolean): Promise<number> => {
    const tasks = Array.from({ length: STREAMS }, (_, index): Task => ({
      prompt: STREAM_PROMPT,
      seed: seed + index,
      answer,
    }))
    return (await side.order({ type: 'run', tasks, together })).milliseconds
  }
  // A batch may compile something the first time.
  if (rounds > 1) await run(200, true)
  const alone = await run(300, false)
  const together = await run(400, true)
  return { ratio: alone / together, rate: ((STREAMS * answer) / together) * 1_000 }
}

async function inTime<T>(work: Promise<T>, onLate: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      onLate()
      reject(new Error(`It took more than ${PATIENCE_MS / 1_000} s.`))
    }, PATIENCE_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
