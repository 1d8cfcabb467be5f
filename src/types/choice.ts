import type { Device, Tag } from './model.ts'

/** Why an implementation is or is not the one that a device uses. */
export interface Reason {
  /** Of the implementation, unique within its tag. */
  id: string
  device: Device
  chosen: boolean
  /** For people. */
  why: string
  /** Of all its resources; `null` where they are looked up when it is first loaded. */
  bytes: number | null
  /** Milliseconds of one run, as measured on this device; `null` where it was not. */
  milliseconds: number | null
}

/** The device as the choice sees it. */
export interface DeviceSummary {
  /** The name under which what was learnt about it is kept. */
  id: string
  /** `null` where there is no WebGPU, or its numbers were found to be wrong. */
  gpu: { name: string; software: boolean; features: string[] } | null
  wasm: { simd: boolean; threads: boolean }
  /** Bytes, as far as the browser tells. */
  memory: number | null
  cores: number
}

/** Which implementation of a tag this device uses, and why not another. */
export interface Explanation {
  tag: Tag
  /** Id of the implementation; `null` where none can run here. */
  chosen: string | null
  /** One for every implementation, in the catalog's order. */
  reasons: Reason[]
  device: DeviceSummary
}
