/**
 * The engine for decoders in the ONNX format. `load.ts` loads weights into a `decoder/`, which runs
 * the graph and keeps the KV caches. `runtime.ts` is the only interface to ONNX Runtime, and
 * `graph-file.ts` reads and rewrites its files. `gguf/` builds the graph of a GGUF file. On WASM,
 * `convert-weights.ts` converts weights, and `heap.ts` keeps tensors in the runtime's memory. On GPUs, `logits/`
 * finds the highest logits, and `selftest/` checks that the GPU computes correctly. `vision/` reads
 * images of prompts.
 */
import { openDecoderEngine } from '../decoder-engine.ts'
import type { OpenEngine } from '../engine.ts'
import { withModelFiles } from '../gguf/model-files.ts'
import { loadDecoder, startRuntime } from './load.ts'
import { getModelFiles, hasLargeWeights } from './model-files.ts'
import { readVisionFamily } from './vision/families.ts'
import { ImageStore } from './vision/image-store.ts'

/** Opens an engine for a model in the ONNX format. */
export const openOnnx: OpenEngine = async ({ texts, ...given }) => {
  const { device, expectedWeights } = given
  // Compiling WebAssembly takes longer than opening the tokenizer and reading small weights, and the self-test of a
  // GPU takes seconds in which weights arrive. This worker ends with the engine, so the start needs no signal.
  let started =
    expectedWeights &&
    startRuntime(
      given,
      hasLargeWeights(getModelFiles(expectedWeights)),
      new AbortController().signal,
    )
  started?.catch(() => undefined)
  const setup = { ...given, texts: await withModelFiles(texts) }
  const family = setup.takesImages === false ? null : await readVisionFamily(setup.texts)
  const images = family && new ImageStore(family)
  return openDecoderEngine(setup, {
    load(options, weights, signal) {
      const loading = loadDecoder({ ...options, started, images }, weights, signal)
      started = undefined
      return loading
    },
    // Drafts save no time on the CPU, where verifying tokens takes as long as decoding them.
    drafts: device === 'webgpu',
    images,
  })
}
