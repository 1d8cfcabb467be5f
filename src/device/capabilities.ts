/** What this device can do, as far as a browser tells. */
import { describeAdapter, findAdapter, type AdapterDescription } from './adapter.ts'

/** Plain data: it can cross a thread and be kept. */
export interface Capabilities {
  /** `null` where there is no WebGPU, or none to be trusted. */
  webgpu: AdapterDescription | null
  /** Why the GPU, or a feature of it, is not to be trusted: its numbers were wrong, or came too late. */
  doubt?: 'wrong' | 'late'
  /** Features of the GPU that are not to be trusted; `webgpu` is without them. */
  unsound?: readonly string[]
  wasm: {
    simd: boolean
    /** Shared memory: the page is cross-origin isolated. */
    threads: boolean
    /** Promise integration: WebAssembly may wait for JavaScript. */
    jspi: boolean
  }
  /**
   * Bytes of memory, rounded down by the browser and never above some cap; `null` when it is
   * silent.
   */
  memory: number | null
  /** Logical processors. */
  cores: number
}

/** Looks at the device. For workers and pages; takes some milliseconds, 10 s where a GPU hangs. */
export async function probeDevice(): Promise<Capabilities> {
  const adapter = await findAdapter()
  return {
    webgpu: adapter && describeAdapter(adapter),
    wasm: {
      simd: WebAssembly.validate(SIMD_MODULE),
      threads: globalThis.crossOriginIsolated === true && typeof SharedArrayBuffer === 'function',
      jspi: 'Suspending' in WebAssembly,
    },
    memory: memoryHere(),
    cores: navigator.hardwareConcurrency || 1,
  }
}

/** Bytes of this device's memory, as {@link Capabilities} has it. */
export function memoryHere(): number | null {
  // Types know it of no browser; Node has no `navigator`.
  const { deviceMemory } = (globalThis.navigator ?? {}) as { deviceMemory?: number }
  return deviceMemory === undefined ? null : deviceMemory * 2 ** 30
}

/**
 * The name under which things learnt about the device are kept, such as
 * `dev_apple-metal-3-8cpu-8g`. Made of what the hardware is: features and limits come and go with
 * browser versions.
 */
export function deviceId({ webgpu, memory, cores }: Capabilities): string {
  const gpu = webgpu
    ? [webgpu.vendor, webgpu.architecture, webgpu.device, webgpu.software ? 'software' : '']
    : ['nogpu']
  const room = memory === null ? '' : `${memory / 2 ** 30}g`
  const words = [...gpu, `${cores}cpu`, room].join('-').toLowerCase()
  return `dev_${words.replace(/[^a-z0-9.]+/g, '-').replace(/^-|-$/g, '')}`
}

/** A module of one function, `() => i8x16.popcnt(i8x16.splat(0))`: valid where SIMD is known. */
const SIMD_MODULE = Uint8Array.of(
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0, // magic, version
  1,
  5,
  1,
  96,
  0,
  1,
  123, // type: () -> v128
  3,
  2,
  1,
  0, // function of type 0
  10,
  10,
  1,
  8,
  0,
  65,
  0,
  253,
  15,
  253,
  98,
  11, // i32.const 0, i8x16.splat, i8x16.popcnt
)
