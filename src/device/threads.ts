/** Numbers of threads with which WebAssembly can run on this device. */

/**
 * Returns `true` if WebAssembly can use threads, which need the shared memory of isolated pages.
 * Isolated pages of WebKitGTK 2.50 have none, and the runtime would wait for its threads forever.
 */
export const hasSharedMemory = (): boolean =>
  globalThis.crossOriginIsolated === true && typeof SharedArrayBuffer === 'function'

/** Largest number of threads before the fastest number has been measured. */
const MAX_UNMEASURED_THREADS = 4

/** Returns the number of threads to use on a device where the fastest one was not measured. */
export const guessThreads = (cores: number): number => Math.min(MAX_UNMEASURED_THREADS, cores)

/** Returns the numbers of threads to measure on a device, in ascending order. */
export const listThreadCounts = (cores: number): number[] => [
  ...[1, 2, 4, 8].filter((count) => count < cores),
  cores,
]
