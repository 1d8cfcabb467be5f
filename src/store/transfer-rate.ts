/** Measures the rate of incoming bytes and reports progress. */
import type { Tag } from '../types/index.ts'

/** Rate measured over a sliding window of `window` milliseconds. */
export class Rate {
  readonly #now: () => number
  readonly #window: number
  readonly #started: number
  #samples: { time: number; bytes: number }[] = []

  constructor(now: () => number = () => performance.now(), window = 4000) {
    this.#now = now
    this.#window = window
    this.#started = now()
  }

  add(bytes: number): void {
    const time = this.#now()
    const last = this.#samples.at(-1)
    // Hundreds of pieces arrive per second, so those within 100 ms form one sample.
    if (last && time - last.time < 100) last.bytes += bytes
    else this.#samples.push({ time, bytes })
  }

  /** Returns the bytes per second over the last few seconds; 0 if none arrived. */
  get perSecond(): number {
    const time = this.#now()
    this.#samples = this.#samples.filter((sample) => time - sample.time <= this.#window)
    const bytes = this.#samples.reduce((sum, sample) => sum + sample.bytes, 0)
    const elapsed = Math.max(100, Math.min(this.#window, time - this.#started))
    return bytes === 0 ? 0 : (bytes * 1000) / elapsed
  }
}

/** Progress of a transfer. */
export interface TransferProgress {
  loadedBytes: number
  totalBytes: number
  /** Bytes per second over the last few seconds; 0 if none arrived from the network. */
  bytesPerSecond: number
  /** Estimated seconds until the rest has arrived; `null` while nothing arrives. */
  remainingSeconds: number | null
}

export function toTransferProgress(
  loadedBytes: number,
  totalBytes: number,
  bytesPerSecond: number,
): TransferProgress {
  const missing = totalBytes - loadedBytes
  const remainingSeconds = missing <= 0 ? 0 : bytesPerSecond > 0 ? missing / bytesPerSecond : null
  return { loadedBytes, totalBytes, bytesPerSecond, remainingSeconds }
}

/** Calls `onProgress` up to five times a second while it changes, until the result is called. */
export function startProgressReports<
  Progress extends { loadedBytes: number; bytesPerSecond: number },
>(progress: () => Progress, onProgress: (progress: Progress) => void): () => void {
  let last = progress()
  onProgress(last)
  const timer = setInterval(() => {
    const next = progress()
    const { loadedBytes, bytesPerSecond } = last
    const same = next.loadedBytes === loadedBytes && next.bytesPerSecond === bytesPerSecond
    if (!same) onProgress(next)
    last = next
  }, 200)
  return () => clearInterval(timer)
}

/** Creates a meter for the bytes of one phase of the work for a tag. */
export function createProgressMeter<P extends string>(tag: Tag, phase: P, totalBytes: number) {
  const rate = new Rate()
  let loadedBytes = 0
  return {
    add(bytes: number) {
      loadedBytes = Math.min(totalBytes, loadedBytes + bytes)
      rate.add(bytes)
    },
    progress() {
      return { tag, phase, ...toTransferProgress(loadedBytes, totalBytes, rate.perSecond) }
    },
  }
}
