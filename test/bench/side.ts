/** What is measured of each side, on the same files, device and run: ours and those of others. */
import type { Precision, Sampling } from '../../src/types/index.ts'
import type { Format, ModelName } from './models/shapes.ts'
import { countWork, type Work, workBetween, workDone } from './work.ts'

export type SideName = 'inorigin' | 'transformers' | 'wllama' | 'webllm'

/** One decode of random tokens. */
export interface Task {
  /** Tokens of the prompt, drawn from this seed. */
  prompt: number
  seed: number
  /** The prompt instead, for a model whose tokens mean something. */
  given?: Given
  /** Tokens of the answer. */
  answer: number
  /** Ours only. Default: greedy. */
  sampling?: Pick<Sampling, 'temperature' | 'frequencyPenalty'>
}

/** A prompt as tokens, and as the text that has them. */
export interface Given {
  tokens: readonly number[]
  text: string
}

/** Prompt and answer of the model in 32 bits. */
export interface ReferenceAnswer {
  /** Tokens of the prompt. */
  prompt: readonly number[]
  answer: readonly number[]
  /** The text before each token of the answer; `null` if that text has other tokens. */
  texts: readonly (string | null)[]
  /** Distance of the two best logits at each token of the answer. */
  margins: readonly number[]
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
  model: ModelName
  /** Format of the weights. */
  format: Format
  device: 'wasm' | 'webgpu'
  /** Threads on WASM. More than one needs a page that is isolated. */
  threads: number
  /** Ours only. Default: `fast`. */
  precision?: Precision
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
  /** An answer that is forced. */
  | { type: 'force'; reference: ReferenceAnswer }

export interface Answers {
  /** Milliseconds from the files on the disk to a model that answers. */
  open: number
  run: { runs: Run[]; milliseconds: number; work: Work }
  /** The two runs. */
  turns: [Run, Run]
  /**
   * The best token in place of each token of the answer, after the same tokens; `null` if the side
   * takes only texts, and there is none.
   */
  force: (number | null)[]
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
    wanted: Pick<Task, 'answer' | 'sampling' | 'given'>,
    onPiece: OnPiece,
  ): Promise<void>
  /** Computes the answer token by token, as if it had chosen them itself. See {@link Answers}. */
  force(reference: ReferenceAnswer): Promise<Answers['force']>
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
        const work = (task: Task) =>
          run(task.given?.tokens ?? drawTokens(task.prompt, task.seed), task)
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
      case 'force':
        return side.force(order.reference)
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
