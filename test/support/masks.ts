/** Other devices than the one the tests run on, as the browser would describe them to a worker. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Site } from './site.ts'

export interface Mask {
  /** Replaces facts of the adapter; `null` takes WebGPU away. Default: the real adapter. */
  gpu?: { vendor: string; architecture: string; isFallbackAdapter?: boolean } | null
  /** Features of the adapter. */
  features?: readonly string[]
  limits?: Readonly<Record<string, number>>
  /** GiB that the browser tells. */
  memory?: number
  /** `true` if WebAssembly has SIMD. */
  simd?: boolean
  /** Every device has the feature with which the adapter of the tests computes wrong numbers. */
  wrong?: boolean
}

/** A GPU that is not made of software, whatever it is made of here. */
export const REAL = { vendor: 'acme', architecture: 'one', isFallbackAdapter: false }

const SCRIPTS = ['worker.js', 'model-worker.js']

/** From now on the workers of that site see that device. */
export function wear(site: Site, mask: Mask): void {
  for (const script of SCRIPTS) {
    const source = readFileSync(join('dist-demo/inorigin', script), 'utf8')
    site.pages[`/inorigin/${script}`] = `(${disguise})(${JSON.stringify(mask)});\n${source}`
  }
}

/** Runs in a worker, before anything looks at the device. */
function disguise({ gpu, features, limits, memory, simd, wrong }: Mask): void {
  const say = (object: object, name: string, value: unknown) =>
    Object.defineProperty(object, name, { get: () => value, configurable: true })
  if (gpu === null) say(navigator, 'gpu', undefined)
  else if (gpu) say(GPUAdapter.prototype, 'info', { device: '', description: '', ...gpu })
  if (features) say(GPUAdapter.prototype, 'features', new Set(features))
  if (limits) {
    const real = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'limits')?.get
    const get = function (this: GPUAdapter): object {
      const all: Record<string, unknown> = {}
      const own = real?.call(this) as Record<string, unknown>
      for (const name in own) all[name] = own[name]
      return { ...all, ...limits }
    }
    Object.defineProperty(GPUAdapter.prototype, 'limits', { get })
  }
  if (memory !== undefined) say(navigator, 'deviceMemory', memory)
  if (wrong) {
    const request = GPUAdapter.prototype.requestDevice
    GPUAdapter.prototype.requestDevice = function (this: GPUAdapter, wanted = {}) {
      return request.call(this, { ...wanted, requiredFeatures: ['subgroups' as GPUFeatureName] })
    }
  }
  if (simd === false) {
    const validate = WebAssembly.validate
    // Only what is asked with a module of a few bytes; the runtime's own are left alone.
    WebAssembly.validate = (bytes) => bytes.byteLength > 100 && validate(bytes)
  }
}
