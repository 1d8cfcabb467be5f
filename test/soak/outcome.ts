/** Compares an answer with the undisturbed one. */
import { findPause, type Question, type Received } from '../support/requests.ts'
import { toTranscript, type Transcript } from '../support/transcript.ts'
import type { Passage } from './control.ts'
import type { Fault } from './faults.ts'

/**
 * `same`: the undisturbed answer. `prefix`: its beginning, because the client left. `passed by`: the
 * web server got the request while the page was without control, and the page was told.
 */
export type Verdict =
  | 'same'
  | 'prefix'
  | 'allowed error'
  | 'passed by'
  | 'wrong'
  | 'hang'
  | 'failed'

export interface Outcome {
  verdict: Verdict
  /** What is wrong, or which error was allowed. */
  note: string
  /** Milliseconds from the fault to the next content; `null` if none was missing. */
  recoveryMs: number | null
}

interface Circumstances {
  question: Question
  fault: Fault
  /** The undisturbed answer. */
  whole: Transcript
  /** Time of the fault in milliseconds since 1970; `null` if it came before the request. */
  struckAt: number | null
  /** `true` if the service worker ended while it answered. */
  lostServiceWorker: boolean
  /** How the request reached the web server. */
  passage: Passage
}

export function judge(received: Received, circumstances: Circumstances): Outcome {
  const { question, struckAt, passage } = circumstances
  const recoveryMs = struckAt === null ? null : findPause(received.arrivals, struckAt)
  const verdict = (name: Verdict, note = ''): Outcome => ({ verdict: name, note, recoveryMs })
  if (passage === 'told') return verdict('passed by')
  if (passage === 'untold') return verdict('wrong', 'The web server got the request.')
  if (received.end === 'aborted') {
    const { style, stream } = question
    const seen = toTranscript(style, received.text, { stream, cut: true })
    const [longer, shorter] = [contentOf(circumstances.whole), contentOf(seen)]
    return longer.startsWith(shorter)
      ? verdict('prefix')
      : verdict('wrong', differ(longer, shorter))
  }
  if (received.end !== 'done') {
    const isAllowed = question.client === 'fetch' && circumstances.lostServiceWorker
    return verdict(isAllowed ? 'allowed error' : 'wrong', received.end)
  }
  return compare(received, circumstances, verdict)
}

function compare(
  received: Received,
  { question: { style, stream }, fault, whole }: Circumstances,
  verdict: (name: Verdict, note?: string) => Outcome,
): Outcome {
  const judgeError = (note: string): Outcome => {
    const isAllowed = fault.allowedMessage !== undefined && note.includes(fault.allowedMessage)
    return verdict(isAllowed ? 'allowed error' : 'wrong', note)
  }
  // A request that is refused has an error in its body, streamed or not.
  if (received.status !== 200) return judgeError(received.text)
  const seen = toTranscript(style, received.text, { stream })
  if (seen.error !== null) return judgeError(JSON.stringify(seen.error))
  const [expected, got] = [JSON.stringify(whole), JSON.stringify(seen)]
  return expected === got ? verdict('same') : verdict('wrong', differ(expected, got))
}

/** The content in the order in which a client receives it. */
function contentOf({ reasoning, text, calls }: Transcript): string {
  return reasoning + text + calls.map((call) => call.name + call.arguments).join('')
}

/** Returns where two texts begin to differ. */
function differ(expected: string, got: string): string {
  let at = 0
  while (at < expected.length && expected[at] === got[at]) at += 1
  const part = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 20), at + 40))
  return `at ${at} of ${expected.length}: ${part(got)} instead of ${part(expected)}`
}
