/**
 * The engine for decoders in the ONNX format. `load.ts` loads weights into a `decoder/`, which runs
 * the graph and keeps the KV caches. `runtime.ts` is the only interface to ONNX Runtime. On WASM,
 * `heap/` keeps tensors in the runtime's memory. On GPUs, `logits/` finds the highest logits in GPU
 * memory, and `selftest/` checks that the GPU computes correctly.
 */
import { openDecoderEngine } from '../decoder-engine.ts'
import type { OpenEngine } from '../engine.ts'
import { loadDecoder } from './load.ts'

/** Opens an engine for a model in the ONNX format. */
export const openOnnx: OpenEngine = (setup) =>
  // Drafts save no time on the CPU, where verifying tokens takes as long as decoding them.
  openDecoderEngine(setup, { load: loadDecoder, drafts: setup.device === 'webgpu' })
