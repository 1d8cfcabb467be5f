/** Background responses of a host without a database: their events are in memory. */
import { InoriginError } from '../../../src/error.ts'
import type { BackgroundEvent, BackgroundLog, Caller, Host } from '../../../src/types/index.ts'

type BackgroundMethods = Pick<
  Host,
  | 'createBackground'
  | 'getBackground'
  | 'followBackground'
  | 'cancelBackground'
  | 'deleteBackground'
>

/** Computes each response when it is created, up to the first event that is not of a script. */
export function backgroundHost(generate: Host['generate']): BackgroundMethods {
  const logs = new Map<string, { key: string | null; log: BackgroundLog }>()

  function find(id: string, { key }: Caller): BackgroundLog | null {
    const found = logs.get(id)
    return found && found.key === key ? found.log : null
  }

  return {
    async createBackground(response, caller) {
      const { events, ignored } = await generate(response.request, caller)
      const stored: BackgroundEvent[] = [{ type: 'queued' }]
      try {
        for await (const event of events)
          if (event.type !== 'progress' && event.type !== 'heartbeat') stored.push(event)
      } catch (thrown) {
        const error = InoriginError.from(thrown).toRecord()
        if (error.kind !== 'aborted') stored.push({ type: 'finish', reason: 'failed', error })
      }
      logs.set(response.id, { key: caller.key, log: { response, events: stored } })
      return { ignored }
    },
    getBackground: async (id, caller) => find(id, caller),
    async followBackground(id, skippedEvents, caller) {
      const log = find(id, caller)
      if (!log) {
        throw new InoriginError('not_found', 'There is no such response.', {
          code: 'response_not_found',
        })
      }
      const events = (async function* () {
        yield* log.events.slice(skippedEvents)
      })()
      return { response: log.response, events }
    },
    async cancelBackground(id, caller) {
      const log = find(id, caller)
      if (!log) return false
      const isFinished = log.events.at(-1)?.type === 'finish'
      const end: BackgroundEvent = { type: 'finish', reason: 'cancelled' }
      const events = isFinished ? log.events : [...log.events, end]
      logs.set(id, { key: caller.key, log: { ...log, events } })
      return true
    },
    deleteBackground: async (id, caller) => find(id, caller) !== null && logs.delete(id),
  }
}
