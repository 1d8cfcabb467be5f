/** The measurements of the benchmark, all through the public API and `/v1`. */
import type { Device, LoadProgress, Server, Tag } from '../../src/index.ts'
import { bytesOf } from '../format.ts'
import { openEndpoint, type Endpoint, type Message, type Run } from './endpoint.ts'
import { createPrompts, type DrawPrompt } from './prompt.ts'
import type { DecodeRate, Effort, Measurements, UsedImplementation } from './result.ts'

/** Size in bytes up to which stored files are deleted, so that their download is measured. */
const MAX_DELETED_BYTES = 32_000_000
/** Number of streams that run at once. */
const STREAMS = 4
/** Tokens of the prompt before a short answer. */
const SHORT_PROMPT_TOKENS = 48
/** Tokens of an answer of which only the first counts. */
const SHORT_ANSWER_TOKENS = 16
/** Maximum number of tokens of one measured answer. */
const MAX_ANSWER_TOKENS = 256
/** Tokens of the context that stay free for a second turn, and because prompts are estimated. */
const SPARE_TOKENS = 96
const DIGITS: Tag = '@inorigin/digits'

export interface MeasureOptions {
  server: Server
  tag: Tag
  effort: Effort
  signal: AbortSignal
  /** Callback for the phase and its share of the whole, from 0 to 1. */
  onProgress: (phase: string, share: number) => void
}

/** Parts of the benchmark that take rounds, in their order. */
const PARTS = ['load', 'firstToken', 'short', 'middle', 'long', 'concurrent'] as const

interface Steps {
  /** Tells the next phase. Throws the reason of the signal. */
  begin(phase: string): void
  /** Runs the work once in each round. */
  repeat<T>(phase: string, work: () => Promise<T>): Promise<T[]>
}

function createSteps({ effort: { rounds }, signal, onProgress }: MeasureOptions): Steps {
  // Beside the rounds: the first load, the comparison, the warm-up, the requests and the predictor.
  const steps = 5 + PARTS.length * rounds
  let step = 0
  const begin = (phase: string): void => {
    signal.throwIfAborted()
    onProgress(phase, step / steps)
    step += 1
  }
  return {
    begin,
    async repeat(phase, work) {
      let round = 0
      return times(rounds, () => {
        begin(`${phase}, round ${(round += 1)} of ${rounds}`)
        return work()
      })
    },
  }
}

/** Measures one model. Rejects with the error of the model or with the reason of the signal. */
export async function measure(options: MeasureOptions): Promise<Measurements> {
  const { server, tag, effort, signal, onProgress } = options
  const { begin, repeat } = createSteps(options)
  begin('Loading the model')
  const downloadMs = await loadFirst(options, (phase) => onProgress(phase, 0))
  begin('Comparing the implementations on this device')
  const implementation = await findImplementation(server, tag, signal)
  const loads = await repeat('Loading from the store', () => timeLoad(server, tag, signal))
  begin(`Warming up ${implementation.id}`)
  const endpoint = await openEndpoint(server, tag, signal)
  const draw = await createPrompts((text) => endpoint.countTokens(text))
  const answerTokens = await findAnswerTokens(endpoint, draw, effort.answerSeconds)
  const room = (await endpoint.contextTokens()) - answerTokens - SPARE_TOKENS
  const promptTokens = Math.min(effort.promptTokens, room)
  const turns = await repeat('Time to the first token', () =>
    timeTurns(endpoint, draw(promptTokens)),
  )
  const short = await repeat('Decoding after a short prompt', () =>
    decodeTwice(endpoint, [user(draw(SHORT_PROMPT_TOKENS))], answerTokens),
  )
  const longTokens = Math.min(effort.longContextTokens, room)
  const decodeAt = (name: string, tokens: number): Promise<Decode[]> => {
    const context = [user(draw(tokens))]
    return repeat(`Decoding at a ${name} context`, () =>
      decodeTwice(endpoint, context, answerTokens),
    )
  }
  const middle = await decodeAt('middle', longTokens / 2)
  const long = await decodeAt('long', longTokens)
  const concurrent = await repeat(`${STREAMS} streams at once`, () =>
    timeStreams(endpoint, draw, answerTokens),
  )
  begin('Timing requests that compute nothing')
  const requests = await times(effort.predictions, endpoint.timeRequest)
  begin('Running a predictor')
  const predict = await timePredictions(server, effort.predictions, signal)
  return {
    implementation,
    answerTokens,
    load: { downloadMs, storedMs: median(loads) },
    ...summarizeTurns(turns),
    decode: { short: toRate(short), middle: toRate(middle), long: toRate(long) },
    overheadMs: median(requests),
    concurrent: summarizeStreams(concurrent),
    predict,
  }
}

const user = (content: string): Message => ({ role: 'user', content })

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = 0] = [sorted[middle - 1], sorted[middle]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2
}

/** Runs the work this many times, one after the other. */
async function times<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let index = 0; index < count; index += 1) results.push(await work())
  return results
}

/** Loads the model. Resolves with the milliseconds, or with `null` if nothing was downloaded. */
async function loadFirst(
  { server, tag, signal }: MeasureOptions,
  onPhase: (phase: string) => void,
): Promise<number | null> {
  const stored = (await server.storage.list()).find((each) => each.tag === tag)
  // Pinned files may be the user's own, which nothing can download again.
  const isKept = stored && (stored.pinned || stored.bytes > MAX_DELETED_BYTES)
  if (stored && !isKept) await server.storage.remove(tag)
  const onProgress = ({ phase, loadedBytes, totalBytes }: LoadProgress): void => {
    const downloaded = `Downloading the model, ${bytesOf(loadedBytes, totalBytes)}`
    onPhase(phase === 'download' ? downloaded : 'Preparing the model')
  }
  const began = performance.now()
  await server.models.load(tag, { signal, onProgress })
  return isKept ? null : performance.now() - began
}

/** Resolves with the implementation that is fastest here, after comparing those that are stored. */
async function findImplementation(
  server: Server,
  tag: Tag,
  signal: AbortSignal,
): Promise<UsedImplementation> {
  const { reasons } = await server.explain(tag, { signal })
  const used = reasons.find(({ chosen }) => chosen)
  if (!used || used.device === 'upstream') throw new Error(`${tag} cannot run on this device.`)
  return { id: used.id, device: used.device, bytes: used.bytes ?? 0 }
}

async function timeLoad(server: Server, tag: Tag, signal: AbortSignal): Promise<number> {
  await server.models.unload(tag)
  const began = performance.now()
  await server.models.load(tag, { signal })
  return performance.now() - began
}

/**
 * Resolves with the number of tokens that take about this many seconds. The answers to find that
 * out also warm the model up, which may still compile something.
 */
async function findAnswerTokens(
  endpoint: Endpoint,
  draw: DrawPrompt,
  seconds: number,
): Promise<number> {
  const ask = () => endpoint.complete([user(draw(SHORT_PROMPT_TOKENS))], SHORT_ANSWER_TOKENS)
  await ask()
  const { completionTokens, totalMs } = await ask()
  const tokens = Math.round((1_000 * seconds * completionTokens) / totalMs)
  return Math.min(MAX_ANSWER_TOKENS, Math.max(SHORT_ANSWER_TOKENS, tokens))
}

type Turns = readonly [first: Run, second: Run]

/** Asks a question that is new to the model, and then another one in the same conversation. */
async function timeTurns(endpoint: Endpoint, text: string): Promise<Turns> {
  const first = await endpoint.complete([user(text)], SHORT_ANSWER_TOKENS)
  const answer: Message = { role: 'assistant', content: first.text }
  const messages = [user(text), answer, user('Tell me more about the last part.')]
  return [first, await endpoint.complete(messages, SHORT_ANSWER_TOKENS)]
}

function summarizeTurns(
  turns: readonly Turns[],
): Pick<Measurements, 'firstToken' | 'prefillTokensPerSecond'> {
  const middle = (read: (turns: Turns) => number): number => median(turns.map(read))
  return {
    firstToken: {
      promptTokens: middle(([first]) => first.promptTokens),
      coldMs: middle(([first]) => first.firstMs),
      secondTurnPromptTokens: middle(([, second]) => second.promptTokens),
      secondTurnCachedTokens: middle(([, second]) => second.cachedTokens),
      secondTurnMs: middle(([, second]) => second.firstMs),
    },
    prefillTokensPerSecond: middle(
      ([{ promptTokens, cachedTokens, firstMs }]) =>
        ((promptTokens - cachedTokens) / firstMs) * 1_000,
    ),
  }
}

/** One answer as an app gets it, and the same with drafts off. */
interface Decode {
  run: Run
  withoutDrafts: Run
}

/** Measures an answer, and then again without drafts if it could have some. */
export async function decodeTwice(
  endpoint: Endpoint,
  messages: readonly Message[],
  tokens: number,
): Promise<Decode> {
  const run = await endpoint.complete(messages, tokens)
  const withoutDrafts = run.drafts ? await endpoint.complete(messages, tokens, false) : run
  return { run, withoutDrafts }
}

function toRate(decodes: readonly Decode[]): DecodeRate {
  const middle = (read: (run: Run) => number): number => median(decodes.map(({ run }) => read(run)))
  return {
    contextTokens: middle(({ promptTokens }) => promptTokens),
    tokensPerSecond: medianRate(decodes.map(({ run }) => run)),
    tokensPerSecondWithoutDrafts: medianRate(decodes.map(({ withoutDrafts }) => withoutDrafts)),
    acceptedDraftTokens: middle(({ drafts }) => drafts?.accepted ?? 0),
    rejectedDraftTokens: middle(({ drafts }) => drafts?.rejected ?? 0),
  }
}

function medianRate(runs: readonly Run[]): number | null {
  const rates = runs.flatMap(({ rate }) => rate ?? [])
  return rates.length === 0 ? null : median(rates)
}

interface StreamRates {
  alone: number
  together: number
}

/** Times one stream, and then several at once. Each has a prompt of its own. */
async function timeStreams(
  endpoint: Endpoint,
  draw: DrawPrompt,
  tokens: number,
): Promise<StreamRates> {
  const rateOf = async (count: number): Promise<number> => {
    const prompts = Array.from({ length: count }, () => [user(draw(SHORT_PROMPT_TOKENS))])
    const began = performance.now()
    const runs = await Promise.all(prompts.map((messages) => endpoint.complete(messages, tokens)))
    const total = runs.reduce((sum, { completionTokens }) => sum + completionTokens, 0)
    return (total / (performance.now() - began)) * 1_000
  }
  return { alone: await rateOf(1), together: await rateOf(STREAMS) }
}

function summarizeStreams(rounds: readonly StreamRates[]): Measurements['concurrent'] {
  return {
    streams: STREAMS,
    aloneTokensPerSecond: median(rounds.map(({ alone }) => alone)),
    togetherTokensPerSecond: median(rounds.map(({ together }) => together)),
    ratio: median(rounds.map(({ alone, together }) => together / alone)),
  }
}

/** Times the predictor of digits on a picture of a stroke. Its first run is not counted. */
async function timePredictions(
  server: Server,
  count: number,
  signal: AbortSignal,
): Promise<Measurements['predict']> {
  const states = await server.models.list()
  if (!states.some(({ tag }) => tag === DIGITS)) return null
  const image = drawStroke()
  let device: Device = 'wasm'
  const run = async (): Promise<number> => {
    const began = performance.now()
    ;({ device } = await server.predict(DIGITS, { image }, { signal }))
    return performance.now() - began
  }
  await run()
  const runs = await times(count, run)
  return { tag: DIGITS, device, milliseconds: median(runs) }
}

/** Returns a picture of 64 by 64 pixels with a vertical stroke. */
function drawStroke(): ImageData {
  const image = new ImageData(64, 64)
  image.data.fill(255)
  for (let y = 10; y < 54; y += 1) {
    for (let x = 30; x < 35; x += 1) image.data.fill(0, 4 * (64 * y + x), 4 * (64 * y + x) + 3)
  }
  return image
}
