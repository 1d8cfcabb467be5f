/** A thread to ask: holds its liveness lock, streams, and can be told to end itself. */
import { answer, type Handlers } from '../../src/link/answer.ts'
import { holdLivenessLock } from '../../src/link/liveness.ts'

export interface Calls {
  add: { args: [number, number]; result: number; event: never }
  blob: { args: [string]; result: Blob; event: never }
  cancelled: { args: []; result: number; event: never }
}

export interface Streams {
  endless: { args: []; result: string; event: number }
}

let cancelled = 0

const handlers = holdLivenessLock(navigator.locks, 'test').then(
  (livenessLock): Handlers<Calls, Streams> => ({
    livenessLock,
    calls: {
      add: ([one, other]) => one + other,
      blob: ([text]) => new Blob([text]),
      cancelled: () => cancelled,
    },
    streams: {
      endless: async (_args, { signal }) => {
        signal.addEventListener('abort', () => (cancelled += 1))
        async function* events() {
          for (let number = 0; ; number += 1) {
            await new Promise((resolve) => setTimeout(resolve))
            yield number
          }
        }
        return { result: 'begun', events: events() }
      },
    },
  }),
)

self.onmessage = (event: MessageEvent<unknown>) => {
  const port = event.ports[0]
  if (port) void handlers.then((ready) => answer(port, ready))
}
