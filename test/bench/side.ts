/** What is measured of each side, on the same files, device and run: ours and those of others. */
import type { Sampling } from '../../src/types/index.ts'
import type { GgufFormat, OnnxFormat, ShapeName } from './models/shapes.ts'
import { countWork, type Work, workBetween, workDone } from './work.ts'

export type SideName = 'inorigin' | 'transformers' | 'wllama'

/** One decode of random tokens. */
export interface Task {
  /** Tokens of the prompt, drawn from this seed. */
  prompt: number
  seed: number
  /** Tokens of the answer. */
  answer: number
  /** Ours only. Default: greedy. */
  sampling?: Pick<Sampling, 'temperature' | 'frequencyPenalty'>
}

export interface Run {
  /** Milliseconds to the first token. */
  first: number
  /** Tokens per second after it. */
  rate: number
  /** What was written, by the same decoder on both sides. */
  text: string
  /** What a token after the first asked of the GPU; of no use where others ran beside it. */
  work: Work
}

export interface Opening {
  model: ShapeName
  /** Format of the weights. */
  format: OnnxFormat | GgufFormat
  device: 'wasm' | 'webgpu'
  /** Threads on WASM. More than one needs a page that is isolated. */
  threads: number
  /** Ours only: whether to guess tokens ahead. Default: as it does on that device. */
  drafts?: boolean
}

/** Asked of a side's worker; every order is answered by one message. */
export type Order =
  | ({ type: 'open' } & Opening)
  /** One after the other, or all at once. */
  | { type: 'run'; tasks: Task[]; together: boolean }
  /** A prompt, and then the same prompt with this many tokens more. */
  | { type: 'turns'; task: Task; more: number }

export interface Answers {
  /** Milliseconds from the files on the disk to a model that answers. */
  open: number
  run: { runs: Run[]; milliseconds: number; work: Work }
  /** The two runs. */
  turns: [Run, Run]
}

/** Tokens below 2,000 of no meaning; the same for the same seed. */
export function drawTokens(count: number, seed: number): number[] {
  let state = seed + 1
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * 2_000)
  })
}

export type OnPiece = (text: string, tokens: number) => void

/** A side: how to load a model and how to continue tokens. */
export interface Side {
  open(opening: Opening): Promise<void>
  /** Calls `onPiece` whenever tokens of the answer are there. */
  continue(
    tokens: readonly number[],
    wanted: Pick<Task, 'answer' | 'sampling'>,
    onPiece: OnPiece,
  ): Promise<void>
}

/** Answers orders with a side. */
export function serveSide(side: Side): void {
  countWork()
  async function run(prompt: readonly number[], wanted: Task): Promise<Run> {
    const begin = performance.now()
    let [first, last, text, count, before] = [0, 0, '', 0, 0]
    let [from, to] = [workDone(), workDone()]
    await side.continue(prompt, wanted, (piece, tokens) => {
      last = performance.now()
      to = workDone()
      if (first === 0) [first, before, from] = [last, tokens, to]
      text += piece
      count += tokens
    })
    const tokens = count - before
    const rate = (tokens / (last - first)) * 1000
    return { first: first - begin, rate, text, work: workBetween(from, to, 1 / tokens) }
  }

  async function obey(order: Order): Promise<Answers[Order['type']]> {
    const begin = performance.now()
    switch (order.type) {
      case 'open':
        // A side that uses every core uses this many.
        Object.defineProperty(navigator, 'hardwareConcurrency', { value: order.threads })
        await side.open(order)
        return performance.now() - begin
      case 'run': {
        const work = (task: Task) => run(drawTokens(task.prompt, task.seed), task)
        const runs: Run[] = []
        const from = workDone()
        if (order.together) runs.push(...(await Promise.all(order.tasks.map(work))))
        else for (const task of order.tasks) runs.push(await work(task))
        const milliseconds = performance.now() - begin
        return { runs, milliseconds, work: workBetween(from, workDone(), 1) }
      }
      case 'turns': {
        const { task } = order
        const { prompt, seed } = task
        const tokens = drawTokens(prompt, seed)
        const one = await run(tokens, task)
        return [one, await run([...tokens, ...drawTokens(order.more, seed + 1)], task)]
      }
    }
  }

  self.onmessage = ({ data }: MessageEvent<Order>) => {
    obey(data).then(
      (answer) => self.postMessage({ answer }),
      (error: unknown) =>
        self.postMessage({ error: error instanceof Error ? error.stack : String(error) }),
    )
  }
}
