/** How long a run takes, measured where it runs. */

/** Runs after the first, in which shaders are compiled and memory is laid out. */
const RUNS = 5

/** Milliseconds after which no further run is begun. */
const ENOUGH = 600

/**
 * The best of a few runs, in milliseconds; what else a device does only ever makes a run longer. `run`
 * answers how much it did, of which the result is for one.
 */
export async function measure(run: () => Promise<number>, signal: AbortSignal): Promise<number> {
  await run()
  const start = performance.now()
  let best = Infinity
  for (let count = 0; count < RUNS; count += 1) {
    signal.throwIfAborted()
    const before = performance.now()
    const done = await run()
    const after = performance.now()
    best = Math.min(best, (after - before) / done)
    if (after - start > ENOUGH) break
  }
  return best
}
