/** Probes the capabilities of the device that the browser exposes. */
import { type AdapterDescription, describeAdapter, findAdapter } from './adapter.ts'

/** Capabilities of the device, as plain data that can be cloned to another thread and stored. */
export interface Capabilities {
  /** Description of the GPU adapter; `null` if there is no WebGPU or the GPU is not trusted. */
  webgpu: AdapterDescription | null
  /**
   * Reason why the GPU or one of its features is not used: the self-test computed wrong numbers or
   * timed out, or the app has no runtime for it.
   */
  doubt?: 'wrong' | 'late' | 'no-runtime'
  /** Features of the GPU that are not trusted; `webgpu.features` excludes them. */
  unsound?: readonly string[]
  wasm: {
    simd: boolean
    /** `true` if shared memory is available, because the page is cross-origin isolated. */
    threads: boolean
    /** `true` if WebAssembly can suspend for a promise (JavaScript Promise Integration). */
    jspi: boolean
  }
  /**
   * Bytes of device memory, which the browser rounds down and caps; `null` if the browser does not
   * report it.
   */
  memory: number | null
  /** Number of logical processors. */
  cores: number
}

/**
 * Probes the device, from a page or a worker. It takes a few milliseconds, or 10 s if the GPU
 * hangs.
 */
export async function probeDevice(): Promise<Capabilities> {
  const adapter = await findAdapter()
  return {
    webgpu: adapter && describeAdapter(adapter),
    wasm: {
      simd: WebAssembly.validate(SIMD_MODULE),
      threads: hasSharedMemory(),
      jspi: 'Suspending' in WebAssembly,
    },
    memory: getDeviceMemoryBytes(),
    cores: navigator.hardwareConcurrency || 1,
  }
}

/** Returns the bytes of device memory, as in {@link Capabilities}. */
export function getDeviceMemoryBytes(): number | null {
  // TypeScript's types lack `deviceMemory`, and Node may have no `navigator`.
  const { deviceMemory } = (globalThis.navigator ?? {}) as { deviceMemory?: number }
  return deviceMemory === undefined ? null : deviceMemory * 2 ** 30
}

/**
 * Returns the key under which facts about the device are stored, such as
 * `dev_apple-metal-3-8cpu-8g`. The key contains only hardware properties, because features and
 * limits change with browser versions.
 */
export function toDeviceId({ webgpu, memory, cores }: Capabilities): string {
  const gpu = webgpu
    ? [webgpu.vendor, webgpu.architecture, webgpu.device, webgpu.software ? 'software' : '']
    : ['nogpu']
  const room = memory === null ? '' : `${memory / 2 ** 30}g`
  const words = [...gpu, `${cores}cpu`, room].join('-').toLowerCase()
  return `dev_${words.replace(/[^a-z0-9.]+/g, '-').replace(/^-|-$/g, '')}`
}

/**
 * WebAssembly module with one function, `() => i8x16.popcnt(i8x16.splat(0))`, which is valid only
 * if SIMD is supported. It has the magic number and the version, the type `() => v128`, a function
 * of this type, and its code.
 */
const SIMD_MODULE = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
  253, 98, 11,
])

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
