import { findAdapter } from '../../src/device/adapter.ts'

/** Whether WebGPU here has half precision: SwiftShader does not, llvmpipe and most GPUs do. */
export const hasHalves = (await findAdapter())?.features.has('shader-f16') ?? false
