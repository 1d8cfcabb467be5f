/** Measures the duration of a run, in the worker of the model. */

/** Maximum number of measured runs. The first run is a warm-up and is not measured. */
const MAX_MEASURED_RUNS = 5

/** Time in milliseconds after which no further run is started. */
const MEASURE_BUDGET_MS = 600

/**
 * Resolves with the duration of the fastest of a few runs, in milliseconds for one unit of work.
 * `run` resolves with its number of units. Other load can only slow a run, so the minimum counts.
 */
export async function measure(run: () => Promise<number>, signal: AbortSignal): Promise<number> {
  await run()
  const start = performance.now()
  let fastest = Infinity
  for (let count = 0; count < MAX_MEASURED_RUNS; count += 1) {
    signal.throwIfAborted()
    const before = performance.now()
    const units = await run()
    const after = performance.now()
    fastest = Math.min(fastest, (after - before) / units)
    if (after - start > MEASURE_BUDGET_MS) break
  }
  return fastest
}
