/** Runs work on many items, a few at a time. */

/**
 * Runs `work` for every item, at most `limit` at once. The first failure aborts the rest and is the
 * one that is thrown.
 */
export async function forEachParallel<T>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failure = new AbortController()
  const shared = AbortSignal.any([signal, failure.signal])
  const queue = items.values()
  const runWorker = async () => {
    for (const item of queue) {
      await work(item, shared)
    }
  }
  const workers = Array.from({ length: limit }, () =>
    runWorker().catch((thrown: unknown) => failure.abort(thrown)),
  )
  // Waiting for all ensures that nothing writes after the caller learns of a failure.
  await Promise.all(workers)
  if (failure.signal.aborted) throw failure.signal.reason
}
