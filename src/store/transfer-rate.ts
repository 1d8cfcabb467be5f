/** Measures the rate of incoming bytes and reports progress. */
import type { Tag } from '../types/index.ts'

interface Rate {
  add(bytes: number): void
  perSecond(): number
}

/** Creates a rate measured over a sliding window of `window` milliseconds, 4000 by default. */
export function createRate(now: () => number = () => performance.now(), window = 4000): Rate {
  const started = now()
  let samples: { time: number; bytes: number }[] = []
  return {
    add(bytes) {
      const time = now()
      const last = samples.at(-1)
      // Hundreds of pieces arrive per second, so those within 100 ms form one sample.
      if (last && time - last.time < 100) last.bytes += bytes
      else samples.push({ time, bytes })
    },
    perSecond() {
      const time = now()
      samples = samples.filter((sample) => time - sample.time <= window)
      const bytes = samples.reduce((sum, sample) => sum + sample.bytes, 0)
      return bytes === 0 ? 0 : (bytes * 1000) / Math.max(100, Math.min(window, time - started))
    },
  }
}

/** Returns the seconds that so many bytes take at that rate; `null` if the rate is 0. */
function estimateSeconds(bytes: number, bytesPerSecond: number): number | null {
  if (bytes <= 0) return 0
  return bytesPerSecond > 0 ? bytes / bytesPerSecond : null
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
  const remainingSeconds = estimateSeconds(totalBytes - loadedBytes, bytesPerSecond)
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
export function createProgressMeter<Phase extends string>(
  tag: Tag,
  phase: Phase,
  totalBytes: number,
) {
  const rate = createRate()
  let loadedBytes = 0
  return {
    add(bytes: number) {
      loadedBytes = Math.min(totalBytes, loadedBytes + bytes)
      rate.add(bytes)
    },
    progress: () => ({
      tag,
      phase,
      ...toTransferProgress(loadedBytes, totalBytes, rate.perSecond()),
    }),
  }
}
