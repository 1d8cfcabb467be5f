/** The worker that parses answers, as the page uses it. One that takes too long is replaced. */
import type { Began, Growth, Rendered } from './worker.ts'

/** Milliseconds in which the worker must parse what has arrived. Then the source is shown. */
const PARSE_TIMEOUT_MS = 10_000

/** Milliseconds in which the worker must load what it needs for that. */
const LOAD_TIMEOUT_MS = 60_000

/** Side of an answer that the worker parses. */
export interface ParsedAnswer {
  receive(rendered: Rendered): void
  /** Notes that a new worker needs the whole text, and sends it if the old one had not answered. */
  restart(wasWaiting: boolean): void
  /** Shows the source. */
  giveUp(): void
}

const open = new Map<number, ParsedAnswer>()
/** Answers that the worker has not returned yet, in the order in which they were sent. */
let waiting: number[] = []
let answers = 0
let worker: Worker | undefined
let timer: ReturnType<typeof setTimeout> | undefined

/** Loads the parser, so that the first answer need not wait for it. */
export function prepareMarkdown(): void {
  worker ??= startWorker()
}

/** Adds an answer. Returns its number. */
export function openAnswer(parsed: ParsedAnswer): number {
  answers += 1
  open.set(answers, parsed)
  return answers
}

/** Returns `true` if the answer has not been closed. */
export const isOpen = (answer: number): boolean => open.has(answer)

/** Removes an answer, of which nothing is received any more. */
export const closeAnswer = (answer: number): void => void open.delete(answer)

/** Sends the text that an answer has grown by. */
export function send(growth: Growth): void {
  worker ??= startWorker()
  waiting.push(growth.answer)
  worker.postMessage(growth)
  if (waiting.length === 1) watch(LOAD_TIMEOUT_MS)
}

/** Makes the worker forget an answer. */
export function forget(answer: number): void {
  // The worker forgets an answer that is whole.
  if (worker) send({ answer, text: '', isWhole: true })
}

/** Gives the worker this time for the first of the answers that wait. */
function watch(time: number): void {
  clearTimeout(timer)
  if (waiting.length > 0) timer = setTimeout(replaceWorker, time)
}

function startWorker(): Worker {
  const made = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  made.addEventListener('message', ({ data }: MessageEvent<Began | Rendered>) => {
    if (data.type === 'began') return watch(PARSE_TIMEOUT_MS)
    waiting.shift()
    watch(LOAD_TIMEOUT_MS)
    open.get(data.answer)?.receive(data)
  })
  made.addEventListener('error', (event) => {
    event.preventDefault()
    if (worker === made) replaceWorker()
  })
  return made
}

/** Ends the worker. The answer that it could not parse becomes text; the others are parsed anew. */
function replaceWorker(): void {
  clearTimeout(timer)
  worker?.terminate()
  worker = undefined
  const [failed, ...unanswered] = waiting
  waiting = []
  if (failed !== undefined) open.get(failed)?.giveUp()
  for (const [answer, parsed] of open)
    if (answer !== failed) parsed.restart(unanswered.includes(answer))
}
