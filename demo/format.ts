import type { LoadProgress, PredictionResult } from '../src/index.ts'

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** Formats bytes, such as `8.1 MB`, in decimal units. */
export function bytes(count: number): string {
  let value = count
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1_000
    unit += 1
  }
  return `${unit > 0 && value < 99.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`
}

/** Formats progress, such as `3.2 of 8.1 MB`, or with both units if they differ. */
export function bytesOf(count: number, total: number): string {
  const [part = '', unit] = bytes(count).split(' ')
  const whole = bytes(total)
  return `${whole.endsWith(` ${unit}`) ? part : `${part} ${unit}`} of ${whole}`
}

/** Formats a time, such as `3.2 ms`, `420 ms`, `1.42 s`, `12 s` or `3 min`. */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1_000
  if (milliseconds < 9.95) return `${milliseconds.toFixed(1)} ms`
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`
  if (seconds >= 119.5) return `${Math.round(seconds / 60)} min`
  return `${seconds < 9.995 ? seconds.toFixed(2) : Math.round(seconds)} s`
}

/** Formats the time of a run, such as `3.2 ms on WASM`. */
export function runTime({ latency, device }: Pick<PredictionResult, 'latency' | 'device'>): string {
  return `${duration(latency)} on ${device === 'webgpu' ? 'WebGPU' : 'WASM'}`
}

/** Formats a rate, such as `34.2`, or `340` from 100 on. */
export function rate(perSecond: number): string {
  return perSecond < 99.95 ? perSecond.toFixed(1) : String(Math.round(perSecond))
}

/** Formats the progress of loading a predictor. */
export function preparing({ phase, loadedBytes, totalBytes }: LoadProgress): string {
  if (phase !== 'download') return 'Preparing …'
  return `Downloading · ${bytesOf(loadedBytes, totalBytes)}`
}
