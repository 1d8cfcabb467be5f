/** How fast bytes come, and how far they are. */
import type { Tag } from '../types/index.ts'

export interface Rate {
  add(bytes: number): void
  /** Bytes per second over the last few seconds; 0 when none came. */
  perSecond(): number
}

/** Measures over a sliding window, 4 s unless told. */
export function startRate(now: () => number = () => performance.now(), window = 4000): Rate {
  const started = now()
  let samples: { time: number; bytes: number }[] = []
  return {
    add(bytes) {
      const time = now()
      const last = samples.at(-1)
      // Pieces come by the hundred: those of a tenth of a second are one sample.
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

/** Seconds that many bytes take at that rate; `null` while none come. */
export function secondsFor(bytes: number, bytesPerSecond: number): number | null {
  if (bytes <= 0) return 0
  return bytesPerSecond > 0 ? bytes / bytesPerSecond : null
}

/** Tells five times a second while what is told changes, until the function it returns is called. */
export function reportRegularly<Progress extends { loadedBytes: number; bytesPerSecond: number }>(
  progress: () => Progress,
  onProgress: (progress: Progress) => void,
): () => void {
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

/** Counts the bytes of one phase of what is done for a tag. */
export function startMeter<Phase extends string>(tag: Tag, phase: Phase, totalBytes: number) {
  const rate = startRate()
  let loadedBytes = 0
  return {
    add(bytes: number) {
      loadedBytes = Math.min(totalBytes, loadedBytes + bytes)
      rate.add(bytes)
    },
    progress() {
      const bytesPerSecond = rate.perSecond()
      const remainingSeconds = secondsFor(totalBytes - loadedBytes, bytesPerSecond)
      return { tag, phase, loadedBytes, totalBytes, bytesPerSecond, remainingSeconds }
    },
  }
}
