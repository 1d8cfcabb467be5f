/** Estimates of models that were not looked up or run here: their size, their memory and their speed. */
import type { Device, DeviceSummary } from '../src/index.ts'

/** Result of the probe of a device. */
export interface Speed {
  /** Id of the device, with which the result is void on another one. */
  device: string
  place: Device
  /** Bytes of weights that this device multiplies in a second. */
  bytesPerSecond: number
}

const KEY = 'playground:speed'

/** Returns the result of an earlier probe of this device, if there is one. */
export function keptSpeed(device: DeviceSummary): Speed | undefined {
  const kept = JSON.parse(localStorage.getItem(KEY) ?? 'null') as Speed | null
  return kept?.device === device.id && kept.place === placeOf(device) ? kept : undefined
}

export const keepSpeed = (speed: Speed): void => localStorage.setItem(KEY, JSON.stringify(speed))

/** Returns where a model runs on a device that can run it in both places. */
export const placeOf = ({ gpu }: DeviceSummary): Device =>
  gpu && !gpu.software ? 'webgpu' : 'wasm'

const UNITS: Readonly<Record<string, number>> = { m: 1e6, b: 1e9 }

/** Returns the number of parameters that a name states, such as `Qwen3 0.6B`; `undefined` if it states none. */
export function countParameters(name: string): number | undefined {
  const [, figure, unit = ''] = /(?:^|[^\w.])(\d+(?:\.\d+)?)\s?([mb])(?![\w])/i.exec(name) ?? []
  return figure === undefined ? undefined : Number(figure) * (UNITS[unit.toLowerCase()] ?? 0)
}

/**
 * Returns the download of a model in bytes. Weights of 8 bits are one byte for each parameter; those of 4 bits are
 * half, but small models keep large tables in 16 or 32 bits.
 */
export const estimateBytes = (parameters: number): number => parameters

/** Memory of a model over the size of its files: the weights, the KV cache and the runtime. */
const MEMORY_RATIO = 1.25

export const estimateMemory = (bytes: number): number => MEMORY_RATIO * bytes

/**
 * Parts of the probe's rate that decode steps reach. On two cores of an AMD EPYC, 135 M and 500 M weights in
 * 8 bits decoded 36 and 12 to 15 tokens/s on WASM (docs/decisions/0011), and the probe finds 16 GB/s on such
 * a machine: 0.3 to 0.45. No GPU was measured, so half of what its memory reads is assumed.
 */
const SHARE: Readonly<Record<Device, number>> = { wasm: 0.35, webgpu: 0.5 }

/** Seconds of a step on a GPU that no weights take, an assumption. On WASM, they are in the share. */
const STEP_SECONDS: Readonly<Record<Device, number>> = { wasm: 0, webgpu: 0.008 }

/** Returns the tokens that a model writes in a second. */
export function estimateRate(bytes: number, { place, bytesPerSecond }: Speed): number {
  return 1 / (bytes / (SHARE[place] * bytesPerSecond) + STEP_SECONDS[place])
}

/** Formats an estimated rate, such as `~4 tokens/s` or `~20 tokens/s`. */
export function describeRate(rate: number): string {
  const rounded = rate < 10 ? Math.max(1, Math.round(rate)) : 5 * Math.round(rate / 5)
  return `~${rounded} tokens/s`
}
