/** Numbers of threads with which WebAssembly can run on this device. */

/**
 * Returns `true` if WebAssembly can use threads, which need the shared memory of isolated pages.
 * Isolated pages of WebKitGTK 2.50 have none, and the runtime would wait for its threads forever.
 */
export const hasSharedMemory = (): boolean =>
  globalThis.crossOriginIsolated === true && typeof SharedArrayBuffer === 'function'

/** Largest number of threads before the fastest number has been measured; a guess. */
const MAX_UNMEASURED_THREADS = 4

/**
 * Returns the number of threads to use on a device where the fastest one was not measured: as many as
 * processors, up to a bound. The page stays responsive then. Measured with a model of 135 M weights
 * in q8 on two cores of an Intel Xeon, Chromium 156, other programs running:
 *
 * | threads | fastest decode step | longest time between two frames of the page |
 * | ------- | ------------------- | ------------------------------------------- |
 * | none    |                     | 29 ms                                       |
 * | 1       | 52 ms               | 31 ms                                       |
 * | 2       | 34 ms               | 26 ms                                       |
 * | 4       | 80 ms               | 38 ms                                       |
 */
export const guessThreads = (cores: number): number => Math.min(MAX_UNMEASURED_THREADS, cores)

/** Returns the numbers of threads to measure on a device, in ascending order. */
export const listThreadCounts = (cores: number): number[] => [
  ...[1, 2, 4, 8].filter((count) => count < cores),
  cores,
]
