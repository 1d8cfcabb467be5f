/** A probe of this device, 2 s long, from which the speed of models is estimated. It is made once. */
import type { DeviceSummary, Server } from '../../src/index.ts'
import { keepSpeed, keptSpeed, placeOf, type Speed } from '../estimate.ts'
import { measureGpu } from './gpu.ts'

const PROBE_MS = 2_000

/** Resolves with the speed of this device; with `undefined` if it cannot be measured. */
export async function probeDevice(
  server: Server,
  device: DeviceSummary,
  signal: AbortSignal,
): Promise<Speed | undefined> {
  const kept = keptSpeed(device)
  if (kept) return kept
  const place = placeOf(device)
  const measure = (given: AbortSignal) =>
    place === 'webgpu'
      ? measureGpu(PROBE_MS, given)
      : measureThreads(device.wasm.threadCount, given)
  const bytesPerSecond = await measureUndisturbed(server, measure, signal)
  if (bytesPerSecond === undefined) return undefined
  const speed = { device: device.id, place, bytesPerSecond }
  keepSpeed(speed)
  return speed
}

/**
 * Resolves with the result of a measurement that began while no tab asked for anything, and that nothing
 * disturbed. Each event of the server ends an attempt, and the next one waits until nothing runs.
 */
async function measureUndisturbed(
  server: Server,
  measure: (signal: AbortSignal) => Promise<number | undefined>,
  signal: AbortSignal,
): Promise<number | undefined> {
  const done = new AbortController()
  const watched = server.trace({ signal: AbortSignal.any([signal, done.signal]) })
  const events = watched[Symbol.asyncIterator]()
  try {
    for (let event = events.next(); ; event = events.next()) {
      signal.throwIfAborted()
      if (await isIdle(server)) {
        const attempt = new AbortController()
        const measured = measure(AbortSignal.any([signal, attempt.signal])).then((rate) => ({
          rate,
        }))
        measured.catch(() => {})
        const result = await Promise.race([measured, event])
        attempt.abort()
        if ('rate' in result) return result.rate
      } else await event
    }
  } finally {
    done.abort()
  }
}

/** Resolves with `true` if no request and no load of any tab runs or waits. */
async function isIdle({ models }: Server): Promise<boolean> {
  const states = await models.list()
  return states.every(({ users, status }) => users === 0 && status !== 'loading')
}

/** Resolves with the bytes of weights that all threads together multiply in a second. */
async function measureThreads(count: number, signal: AbortSignal): Promise<number | undefined> {
  const workers = Array.from(
    { length: count },
    () => new Worker(new URL('./thread.ts', import.meta.url), { type: 'module' }),
  )
  const end = (): void => workers.forEach((worker) => worker.terminate())
  signal.addEventListener('abort', end)
  try {
    const rates = await Promise.all(workers.map(measureThread))
    return rates.some((rate) => !rate)
      ? undefined
      : rates.reduce<number>((sum, rate) => sum + (rate ?? 0), 0)
  } finally {
    end()
  }
}

function measureThread(worker: Worker): Promise<number | null> {
  return new Promise((resolve) => {
    worker.addEventListener('message', ({ data }: MessageEvent<number | null>) => resolve(data))
    worker.addEventListener('error', () => resolve(null))
    worker.postMessage(PROBE_MS)
  })
}
