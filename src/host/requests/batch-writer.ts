/** Writes the events of a background response to the store. */
import { mergeEvents } from '../../generation/coalesce.ts'
import type { BackgroundEvent } from '../../types/index.ts'

/**
 * Minimum time in milliseconds between two writes. A host that dies loses the events since the
 * last one, which the next host computes again.
 */
const BATCH_INTERVAL_MS = 100

/**
 * Writes events in batches, so that a fast model does not wait for the disk. At most one write is in
 * progress. The first event is written at once. Events of the same kind are merged within a batch.
 */
export class BatchWriter {
  #write: (events: readonly BackgroundEvent[]) => Promise<void>
  #intervalMs: number
  #batch: BackgroundEvent[] = []
  #writing: Promise<void> | null = null
  #failure: { error: unknown } | null = null
  #stopWaiting = (): void => {}
  #isClosed = false

  constructor(
    write: (events: readonly BackgroundEvent[]) => Promise<void>,
    intervalMs = BATCH_INTERVAL_MS,
  ) {
    this.#write = write
    this.#intervalMs = intervalMs
  }

  /** Adds an event to the next batch. Throws the error of an earlier write. */
  add(event: BackgroundEvent): void {
    if (this.#failure) throw this.#failure.error
    const last = this.#batch.at(-1)
    const merged = last && 'text' in last && 'text' in event ? mergeEvents(last, event) : null
    if (merged) this.#batch[this.#batch.length - 1] = merged
    else this.#batch.push(event)
    this.#writing ??= this.#writeAll()
  }

  /** Writes what is left. Rejects with the error of a write. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopWaiting()
    await this.#writing
    if (this.#failure) throw this.#failure.error
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#batch.length > 0) {
        const events = this.#batch
        this.#batch = []
        await this.#write(events)
        if (!this.#isClosed) await this.#wait()
      }
    } catch (error) {
      this.#failure = { error }
    }
    this.#writing = null
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#intervalMs)
      this.#stopWaiting = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
