/** Runs work on many items, a few at a time. */

/**
 * Runs `work` for every item, at most `width` at once. The first failure aborts the rest and is the
 * one that is thrown.
 */
export async function forEachParallel<T>(
  items: readonly T[],
  width: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController()
  const shared = AbortSignal.any([signal, failed.signal])
  const queue = items.values()
  const lane = async () => {
    for (const item of queue) {
      await work(item, shared)
    }
  }
  const lanes = Array.from({ length: width }, () =>
    lane().catch((thrown: unknown) => failed.abort(thrown)),
  )
  // Waiting for all ensures that nothing writes after the caller learns of a failure.
  await Promise.all(lanes)
  if (failed.signal.aborted) throw failed.signal.reason
}
