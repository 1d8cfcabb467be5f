/** Background responses of the test server: their events are in memory. */
import { createLatestValue, type LatestValue } from '../../host/models/latest-value.ts'
import { noBackgroundResponse } from '../../host/requests/background-readers.ts'
import type { Background } from '../../host/requests/background.ts'
import { InoriginError } from '../../error.ts'
import type { BackgroundEvent, BackgroundResponse, Caller, Host } from '../../types/index.ts'

interface Job {
  key: string | null
  response: BackgroundResponse
  events: BackgroundEvent[]
  /** Number of events so far. */
  count: LatestValue<number>
  running: AbortController
}

/** Creates the methods. Each response is computed by `generate`, from its request on. */
export function createTestBackground(generate: Host['generate']): Background['methods'] {
  const jobs = new Map<string, Job>()

  function find(id: string, { key }: Caller): Job | undefined {
    const job = jobs.get(id)
    return job?.key === key ? job : undefined
  }

  return {
    async createBackground(response, { key }) {
      const running = new AbortController()
      const job = { key, response, events: [], count: createLatestValue(0), running }
      const { ignored, events } = await generate(response.request, { key, signal: running.signal })
      jobs.set(response.id, job)
      addEvent(job, { type: 'queued' })
      void run(job, events)
      return { ignored }
    },
    async getBackground(id, caller) {
      const job = find(id, caller)
      return job ? { response: job.response, events: [...job.events] } : null
    },
    async followBackground(id, skippedEvents, caller) {
      const job = find(id, caller)
      if (!job) throw noBackgroundResponse()
      return { response: job.response, events: readEvents(job, skippedEvents, caller.signal) }
    },
    async cancelBackground(id, caller) {
      const job = find(id, caller)
      if (job) finish(job, { type: 'finish', reason: 'cancelled' })
      return job !== undefined
    },
    async deleteBackground(id, caller) {
      const job = find(id, caller)
      job?.running.abort()
      job?.count.fail(noBackgroundResponse())
      return job !== undefined && jobs.delete(id)
    },
  }
}

async function run(job: Job, events: AsyncIterable<BackgroundEvent>): Promise<void> {
  try {
    for await (const event of events) {
      if (event.type !== 'progress' && event.type !== 'heartbeat') addEvent(job, event)
    }
  } catch (thrown) {
    const error = InoriginError.from(thrown).toRecord()
    finish(job, { type: 'finish', reason: 'failed', error })
  }
}

function addEvent({ events, count }: Job, event: BackgroundEvent): void {
  if (isFinished(events)) return
  events.push(event)
  count.set(events.length)
}

/** Ends the response. One that is finished stays as it is. */
function finish(job: Job, last: BackgroundEvent): void {
  addEvent(job, last)
  job.running.abort()
}

const isFinished = (events: readonly BackgroundEvent[]) => events.at(-1)?.type === 'finish'

async function* readEvents(
  { events, count }: Job,
  skippedEvents: number,
  signal: AbortSignal,
): AsyncGenerator<BackgroundEvent> {
  let next = skippedEvents
  for await (const _ of count.read(signal)) {
    // Events may be added while the reader takes the ones before.
    for (; next < events.length; next += 1) yield events[next] as BackgroundEvent
    if (isFinished(events)) return
  }
}
