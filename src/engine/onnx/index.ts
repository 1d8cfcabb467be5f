/**
 * The engine for decoders in the ONNX format. `load.ts` goes from weights to a `decoder/`, which runs
 * the graph and keeps what conversations are remembered by; below it are `runtime.ts`, which alone
 * speaks to ONNX Runtime, `heap/`, which on WASM leaves tensors where it computes, `logits/`, which on
 * GPUs finds the highest scores where they are, and `selftest/`, which finds out whether a GPU computes
 * right.
 */
import { openDecoding } from '../decoding.ts'
import type { OpenEngine } from '../engine.ts'
import { loadDecoder } from './load.ts'

export const openOnnx: OpenEngine = (setup) =>
  // On the CPU several tokens take as long as one after the other.
  openDecoding(setup, { load: loadDecoder, drafts: setup.device === 'webgpu' })
