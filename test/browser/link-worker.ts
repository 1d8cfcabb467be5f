/** A service in a thread that holds its liveness lock. */
import { answer } from '../../src/link/answer.ts'
import { holdLivenessLock } from '../../src/link/locks.ts'
import type { Caller, EventStream, MethodTable } from '../../src/types/index.ts'

export interface Service {
  add(one: number, other: number, caller: Caller): Promise<number>
  blob(text: string, caller: Caller): Promise<Blob>
  canceled(caller: Caller): Promise<number>
  endless(caller: Caller): Promise<EventStream<number>>
}

const METHODS: MethodTable<Service> = {
  add: 'call',
  blob: 'call',
  canceled: 'call',
  endless: 'stream',
}

let canceled = 0

const service: Service = {
  add: async (one, other) => one + other,
  blob: async (text) => new Blob([text]),
  canceled: async () => canceled,
  endless: async ({ signal }) => {
    signal.addEventListener('abort', () => (canceled += 1))
    async function* events() {
      for (let number = 0; ; number += 1) {
        await new Promise((resolve) => setTimeout(resolve))
        yield number
      }
    }
    return { events: events() }
  },
}

const life = holdLivenessLock(navigator.locks, 'test')

self.onmessage = (event: MessageEvent<unknown>) => {
  const port = event.ports[0]
  if (port) void life.then((name) => answer(port, service, METHODS, name))
}
