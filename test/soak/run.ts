/**
 * `npm run test:soak`: sends random requests from three tabs of the built playground in Chromium,
 * does a random damage to the host meanwhile, and compares each answer with the undisturbed one.
 * The number of a step and the seed determine the step, so `--from` continues a soak.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ask, type Question, type Received } from '../support/requests.ts'
import { toTranscript, type Transcript } from '../support/transcript.ts'
import { buildDemo } from '../setup/demo.ts'
import { watchPassage } from './control.ts'
import { FAULTS, type FaultName, type Scene } from './faults.ts'
import { sampleMemory } from './memory.ts'
import { judge, type Outcome } from './outcome.ts'
import { planStep, type Step } from './plan.ts'
import { call, openStage, within, type Stage } from './stage.ts'
import { isGood, printMemory, printResults, type Result } from './table.ts'

const USAGE =
  'npm run test:soak -- [--streams N] [--seed S] [--from I] [--fault NAME] [--results FILE] [--built]'
/**
 * Bound in milliseconds for an answer, from the request to its end. It is far above what an answer
 * takes, because a frozen host is noticed after 30 s, and a GPU that is made of software is slow.
 */
const ANSWER_TIMEOUT_MS = 120_000
const SLOW_ANSWER_TIMEOUT_MS = 300_000
/** Steps between two lines that say how far the soak is. */
const REPORT_INTERVAL_STEPS = 20

interface Wish {
  streams: number
  seed: number
  from: number
  fault: FaultName | undefined
  /** File to which each result is added; the tables count all results in it. */
  file: string | undefined
  /** `true` to use the playground that is already built. */
  isBuilt: boolean
}

function readArguments(): Wish {
  const { values } = parseArgs({
    options: {
      streams: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
      from: { type: 'string', default: '0' },
      fault: { type: 'string' },
      results: { type: 'string' },
      built: { type: 'boolean', default: false },
    },
  })
  const { streams, seed, from, fault, results: file, built } = values
  const numbers = { streams: Number(streams), seed: Number(seed), from: Number(from) }
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new Error(`--${name} must be an integer of at least 0.`)
  }
  if (fault !== undefined && !Object.hasOwn(FAULTS, fault))
    throw new Error(`Unknown fault "${fault}". Expected one of: ${Object.keys(FAULTS).join(', ')}.`)
  return { ...numbers, fault: fault as FaultName | undefined, file, isBuilt: built }
}

/** Runs the steps and prints what came of them. Resolves with `true` if every one is good. */
async function soak({ streams, seed, from, fault, file }: Wish): Promise<boolean> {
  const stage = await openStage()
  const wholes = new Map<string, Transcript>()
  const results: Result[] = readResults(file)
  try {
    for (let index = from; index < from + streams; index += 1) {
      const step = planStep(seed, index, fault)
      const outcome = await runStep(stage, step, wholes).catch(toFailure)
      const memory = await sampleMemory(stage)
      const result = { ...outcome, index, fault: step.fault, memory }
      results.push(result)
      if (file !== undefined) appendFileSync(file, `${JSON.stringify(result)}\n`)
      if (!isGood(result)) console.log(describe(step, result))
      if (results.length % REPORT_INTERVAL_STEPS === 0)
        console.log(`${results.length} streams, ${results.filter(isGood).length} good`)
    }
    const halves = await countHalfStored(stage)
    printResults(results)
    printMemory(results)
    console.log(`${halves} half-stored files`)
    return halves === 0 && results.every(isGood)
  } finally {
    await stage.close()
  }
}

/** Returns the results of the steps before these. */
function readResults(file: string | undefined): Result[] {
  if (file === undefined || !existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as Result)
}

/** One request and its fault. */
async function runStep(
  stage: Stage,
  step: Step,
  wholes: Map<string, Transcript>,
): Promise<Outcome> {
  const fault = FAULTS[step.fault]
  const isDevice = step.fault === 'device destroyed'
  const whole = await findWhole(stage, step, wholes)
  stage.device = isDevice ? 'webgpu' : 'wasm'
  if (isDevice) await stage.closeTabs()
  const host = await stage.fill()
  const askers = stage.tabs.filter((tab) => !fault.losesHost || tab !== host)
  const scene: Scene = {
    stage,
    host,
    asker: askers[step.asker % askers.length]!,
    chance: step.chance,
  }
  let outcome: Outcome
  try {
    await fault.prepare?.(scene)
    outcome = await disturb(scene, step, whole)
  } finally {
    await within(fault.restore?.(scene) ?? Promise.resolve(), 'the end of the fault')
    if (isDevice) await stage.closeTabs()
    stage.device = 'wasm'
  }
  // Memory is that of all tabs.
  await stage.fill()
  return outcome
}

async function disturb(scene: Scene, step: Step, whole: Transcript): Promise<Outcome> {
  const { stage, asker } = scene
  const { question } = step
  const fault = FAULTS[step.fault]
  const life = await stage.serviceWorkerLife(asker)
  const endPassage = await watchPassage(stage, asker)
  const reached = new Promise<void>((resolve) => (stage.onReached = resolve))
  const isSlow = step.fault === 'device destroyed' || step.fault === 'host frozen'
  const answer = within(
    ask(asker, question),
    'the end of the answer',
    isSlow ? SLOW_ANSWER_TIMEOUT_MS : ANSWER_TIMEOUT_MS,
  ).catch(toHang)
  await Promise.race([reached, answer])
  const struckAt = fault.strike ? Date.now() : null
  await within(fault.strike?.(scene) ?? Promise.resolve(), step.fault)
  const received = await answer
  if (received === null)
    return { verdict: 'hang', note: 'The answer did not end.', recoveryMs: null }
  const lostServiceWorker = (await stage.serviceWorkerLife(asker)) !== life
  const passage = await endPassage()
  return judge(received, { question, fault, whole, struckAt, lostServiceWorker, passage })
}

/** Returns the undisturbed answer, which is asked for once. */
async function findWhole(
  stage: Stage,
  { question }: Step,
  wholes: Map<string, Transcript>,
): Promise<Transcript> {
  const { style, stream } = question
  // The files that are downloaded hold the same model.
  const body = { ...question.body, model: '@inorigin/guide' }
  const key = JSON.stringify([body, stream])
  const known = wholes.get(key)
  if (known) return known
  const undisturbed = { ...question, body, frames: null, abortAfter: null }
  const { status, text, end } = await askUndisturbed(stage, undisturbed)
  if (end !== 'done') throw new Error(`The undisturbed answer failed: ${end}`)
  if (status !== 200) throw new Error(`The undisturbed request got status ${status}: ${text}`)
  const whole = toTranscript(style, text, { stream })
  if (whole.error !== null) throw new Error(`Undisturbed: ${JSON.stringify(whole.error)}`)
  wholes.set(key, whole)
  return whole
}

/** Asks once more if control was lost, because the fault before this step may have ended a takeover. */
async function askUndisturbed(stage: Stage, question: Question): Promise<Received> {
  for (let attempt = 1; ; attempt += 1) {
    const host = await stage.fill()
    const endPassage = await watchPassage(stage, host)
    const asking = ask(host, question)
    const received = await within(asking, 'the undisturbed answer', ANSWER_TIMEOUT_MS)
    if (attempt === 2 || (await endPassage()) !== 'told') return received
  }
}

/** Counts the files of which the store has a part. */
async function countHalfStored(stage: Stage): Promise<number> {
  const page = await stage.fill()
  const files = await call(page, (server) => server.storage.resources())
  return files.filter(({ status }) => status === 'partial').length
}

/** Turns the timeout of an answer into `null`. */
function toHang(error: Error): Received | null {
  if (error.message.startsWith('Timeout')) return null
  throw error
}

function toFailure(error: unknown): Outcome {
  const note = error instanceof Error ? error.message : String(error)
  return { verdict: 'failed', note, recoveryMs: null }
}

function describe({ index, content, question }: Step, { fault, verdict, note }: Result): string {
  const { style, stream, client, frames } = question
  const way = stream ? `stream, frame ${frames}` : 'no stream'
  return `#${index} ${fault}: ${verdict} (${style}, ${content}, ${way}, ${client}): ${note}`
}

let wish: Wish | undefined
try {
  wish = readArguments()
  if (!wish.isBuilt) buildDemo()
  process.exitCode = (await soak(wish)) ? 0 : 1
} catch (error) {
  const what = error instanceof Error ? error.message : String(error)
  process.stderr.write(wish ? `${what}\n` : `${what}\nUsage: ${USAGE}\n`)
  process.exitCode = 1
}
