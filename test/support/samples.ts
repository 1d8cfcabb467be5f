/** Values of which a test changes what matters to it. */
import type { Capabilities } from '../../src/device/capabilities.ts'
import type { LoadProgress } from '../../src/types/index.ts'

export const progressOf = (changes: Partial<LoadProgress> = {}): LoadProgress => ({
  tag: '@a/b',
  phase: 'download',
  loadedBytes: 1,
  totalBytes: 10,
  bytesPerSecond: 0,
  remainingSeconds: null,
  ...changes,
})

/** The adapter of a GPU. */
export const gpuOf = (
  changes: Partial<NonNullable<Capabilities['webgpu']>> = {},
): Capabilities['webgpu'] => ({
  vendor: 'acme',
  architecture: 'one',
  device: '',
  description: '',
  software: false,
  features: [],
  limits: {},
  ...changes,
})

/** A device with four cores, without a GPU and threads. */
export const deviceOf = (changes: Partial<Capabilities> = {}): Capabilities => ({
  webgpu: null,
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 4,
  ...changes,
})
