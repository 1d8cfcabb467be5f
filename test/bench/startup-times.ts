/** When the threads of a visit did what, as each of them knows of itself. */

/** Times of one thread, in milliseconds since its own start. */
export interface OwnTimes {
  /** Name of the worker; empty in the page. */
  name: string
  /** Start of the thread in milliseconds since 1970. */
  origin: number
  /** Marks of the User Timing API by name. */
  marks: Record<string, number>
  /** Begin and end of fetches by file name. */
  fetches: Record<string, [from: number, to: number]>
}

/** Report of a visit. */
export interface Report {
  error?: string
  /** Of the page first, then of its workers. */
  threads: OwnTimes[]
}

/** Channel on which the page asks its workers for their times. */
export const CHANNEL = 'bench'
/** What the page sends there. */
export const ASK = 'times'

export function readTimes(): OwnTimes {
  const marks = performance.getEntriesByType('mark')
  const fetches = performance.getEntriesByType('resource') as PerformanceResourceTiming[]
  return {
    name: self.name,
    origin: performance.timeOrigin,
    marks: Object.fromEntries(marks.map(({ name, startTime }) => [name, startTime])),
    fetches: Object.fromEntries(
      fetches.map(({ name, startTime, responseEnd }) => [
        name.replace(/^.*\//, ''),
        [startTime, responseEnd],
      ]),
    ),
  }
}

/**
 * Milliseconds that the first visit lasts after its answer. The browser caches compiled code when no
 * more of it was added for 2 s.
 */
const STAY_MS = 5_000

/** Reports the times of a visit to the web server, or why it failed. */
export async function sendReport(visit: Promise<OwnTimes[]>): Promise<void> {
  const report = await visit.then(
    (threads): Report => ({ threads }),
    (error: unknown): Report => ({ error: String(error), threads: [] }),
  )
  const isFirst = new URLSearchParams(location.search).has('first')
  if (isFirst) await new Promise((resolve) => setTimeout(resolve, STAY_MS))
  await fetch('/report', { method: 'POST', body: JSON.stringify(report) })
}
