/** The package itself: a model loaded by it, and its documented low-level calls. */
import type { ChatOptions, LogitProcessor, MLCEngine } from '@mlc-ai/web-llm'
import { MANIFEST } from '../../catalog/mlc/layout.ts'
import { InoriginError } from '../../error.ts'
import type { Files } from '../engine.ts'
import { deviceFailure, loadingCancelled, modelUnusable } from '../failure.ts'
import { MODEL_URL, openArtifacts } from './artifacts.ts'
import type { Pipeline } from './decoder.ts'
import { readChatConfig } from './texts.ts'

export interface LoadedPipeline extends Pipeline {
  /** Frees the model and its device. */
  release(): Promise<void>
}

export interface PipelineOptions {
  /** Tokens that memory is laid out for, where the model does not see a window of them alone. */
  contextWindow: number
  signal: AbortSignal
}

/** What it is called in the one list that WebLLM is given. */
const ID = 'model'

/**
 * Loads the model in those files. Rejects with `unavailable` that tells what is wrong with the files
 * or the device, and with `aborted`.
 */
export async function openPipeline(
  files: Files,
  { contextWindow, signal }: PipelineOptions,
): Promise<LoadedPipeline> {
  const library = [...files.keys()].find((name) => name.endsWith('.wasm'))
  if (library === undefined) throw modelUnusable('its catalog entry has no resource of type wasm.')
  // WebLLM knows no other way to be given files. This thread is its own, and ends with the model.
  Object.defineProperty(globalThis, 'caches', { value: openArtifacts(files), configurable: true })
  const { MLCEngine: Engine } = await import('@mlc-ai/web-llm').catch((cause: unknown) => {
    const what = 'WebLLM, which runs models compiled by MLC, is not among the files of this app.'
    const todo = 'Run `npx inorigin init <public folder> --mlc`.'
    throw new InoriginError('unavailable', `${what} ${todo}`, { code: 'engine_missing', cause })
  })

  let scores: Float32Array | null = null
  const reader: LogitProcessor = {
    processLogits(logits) {
      // The package goes on to write into what it gives.
      scores = logits.slice()
      return logits
    },
    processSampledToken() {},
    resetState() {},
  }
  const engine = new Engine({
    appConfig: {
      cacheBackend: 'cache',
      model_list: [{
        model: MODEL_URL, model_id: ID, model_lib: new URL(library, MODEL_URL).href,
        ...(files.has(MANIFEST) && { model_manifest: MANIFEST }),
      }],
    },
    logitProcessorRegistry: new Map([[ID, reader]]),
    logLevel: 'SILENT',
  })
  const { sliding_window_size: window } = await readChatConfig(files)
  const slides = typeof window === 'number' && window > 0
  await load(engine, slides ? {} : { context_window_size: contextWindow }, signal)

  return {
    async forward(tokens) {
      scores = null
      await engine.forwardTokensAndSample([...tokens], tokens.length > 1)
      if (!scores) throw new InoriginError('internal', 'WebLLM gave no scores.')
      return scores
    },
    reset: () => engine.resetChat(),
    // What cannot be freed any more is gone already.
    release: () => engine.unload().catch(() => undefined),
  }
}

async function load(engine: MLCEngine, options: ChatOptions, signal: AbortSignal): Promise<void> {
  const stop = (): void => void engine.unload().catch(() => undefined)
  signal.addEventListener('abort', stop)
  try {
    signal.throwIfAborted()
    // What it samples itself is thrown away: the choice is made elsewhere, by its scores.
    await engine.reload(ID, {
      ...options,
      temperature: 0, top_p: 1, repetition_penalty: 1, frequency_penalty: 0, presence_penalty: 0,
    })
    signal.throwIfAborted()
  } catch (thrown) {
    await engine.unload().catch(() => undefined)
    throw signal.aborted ? loadingCancelled() : loadingFailure(thrown)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** By the names of its errors, what cannot be helped on this device. */
const DEVICE_LACKS: Readonly<Record<string, string>> = {
  WebGPUNotAvailableError: 'this browser offers no WebGPU here',
  WebGPUNotFoundError: 'this browser offers no WebGPU here',
  ShaderF16SupportError: 'the GPU has no shader-f16',
  FeatureSupportError: 'the GPU lacks a feature that it needs',
}

function loadingFailure(thrown: unknown): InoriginError {
  if (thrown instanceof InoriginError) return thrown
  const { name, message } = thrown instanceof Error ? thrown : { name: '', message: String(thrown) }
  const lacks = DEVICE_LACKS[name]
  if (lacks !== undefined) {
    const todo = 'Choose another implementation, such as one of the same model with 32-bit floats.'
    return new InoriginError('unavailable', `The model cannot run: ${lacks}. ${todo}`, {
      code: 'no_webgpu', cause: thrown,
    })
  }
  // One that is lost while a model is loaded had no room for it: WebLLM says so in its error.
  return deviceFailure(thrown) ?? modelUnusable(`${message.replace(/\.?$/, '.')}`, thrown)
}
