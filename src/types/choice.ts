import type { Device, Tag } from './model.ts'

/** Reason why this device uses one implementation or does not. */
export interface Reason {
  /** Id of the implementation, unique within its tag. */
  id: string
  device: Device | 'upstream'
  /** `true` for the implementation that this device uses. */
  chosen: boolean
  /** The reason as English text, for display. */
  why: string
  /** Size in bytes of all its resources; `null` if they are looked up at its first load. */
  bytes: number | null
  /** Time in milliseconds of one run, as measured on this device; `null` if it was not measured. */
  milliseconds: number | null
}

/** The properties of the device that the choice of an implementation is based on. */
export interface DeviceSummary {
  /** Id of the device. Its measurements are stored under this id. */
  id: string
  /** The GPU; `null` if the browser or the app has no WebGPU, or if the GPU failed its self-test. */
  gpu: {
    name: string
    software: boolean
    features: string[]
    /** `true` if it passed the self-test here; `false` before the first model that uses it is loaded. */
    tested: boolean
  } | null
  wasm: {
    simd: boolean
    /** `true` if WebAssembly can use threads, because the page is cross-origin isolated. */
    threads: boolean
    /** Number of threads with which a model that is loaded now runs on WASM. */
    threadCount: number
  }
  /** Memory in bytes as the browser reports it; `null` if it does not. */
  memory: number | null
  /** Number of logical CPU cores. */
  cores: number
}

/** Explanation of which implementation of a tag this device uses, and why. */
export interface Explanation {
  tag: Tag
  /** Id of the implementation; `null` if none can run on this device. */
  chosen: string | null
  /** One reason for each implementation, in the order of the catalog, those upstream last. */
  reasons: Reason[]
  device: DeviceSummary
}
