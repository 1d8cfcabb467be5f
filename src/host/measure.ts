/** Measures the duration of a run, in the worker of the model. */

/** Maximum number of measured runs. The first run is a warm-up and is not measured. */
const RUNS = 5

/** Time in milliseconds after which no further run is started. */
const ENOUGH = 600

/**
 * Resolves with the duration of the fastest of a few runs, in milliseconds for one unit of work.
 * `run` resolves with its number of units. Other load can only slow a run, so the minimum counts.
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
