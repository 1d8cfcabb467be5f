/** Writes the events of a response in batches, so that a fast model does not wait for the disk. */
import { mergeEvents } from '../../generation/coalesce.ts'
import type { BackgroundEvent } from '../../types/index.ts'

/**
 * Minimum time in milliseconds between two writes. A host that dies loses the events since the
 * last one, which the next host computes again.
 */
export const BATCH_INTERVAL_MS = 100

export interface BatchWriter {
  /** Adds an event to the next batch. Throws the error of an earlier write. */
  add(event: BackgroundEvent): void
  /** Writes what is left. Rejects with the error of a write. */
  close(): Promise<void>
}

/**
 * Creates a writer that has at most one write in progress. The first event is written at once.
 * Consecutive events of the same kind are merged within a batch.
 */
export function createBatchWriter(
  write: (events: readonly BackgroundEvent[]) => Promise<void>,
  intervalMs = BATCH_INTERVAL_MS,
): BatchWriter {
  let batch: BackgroundEvent[] = []
  let writing: Promise<void> | null = null
  let failure: { error: unknown } | null = null
  let stopWaiting = (): void => {}
  let isClosed = false

  const wait = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, intervalMs)
      stopWaiting = () => {
        clearTimeout(timer)
        resolve()
      }
    })

  async function writeAll(): Promise<void> {
    try {
      while (batch.length > 0) {
        const events = batch
        batch = []
        await write(events)
        if (!isClosed) await wait()
      }
    } catch (error) {
      failure = { error }
    }
    writing = null
  }

  return {
    add(event) {
      if (failure) throw failure.error
      addMerged(batch, event)
      writing ??= writeAll()
    },
    async close() {
      isClosed = true
      stopWaiting()
      await writing
      if (failure) throw failure.error
    },
  }
}

/** Adds an event to a batch, or merges it with the last one. */
function addMerged(batch: BackgroundEvent[], event: BackgroundEvent): void {
  const last = batch.at(-1)
  const merged = last && 'text' in last && 'text' in event ? mergeEvents(last, event) : null
  if (merged) batch[batch.length - 1] = merged
  else batch.push(event)
}
