/**
 * Implements an engine around any decoder, from the folders beside this file.
 *
 * `text/` renders a conversation with the model's chat template and tokenizes it into a prompt.
 * Special tokens in user text are escaped first. `text/` also detokenizes the answer.
 *
 * `run/` lets answers share a decoder. Each answer requests logits, samples a token with
 * `sampling/` within its `constraint/`, and yields text.
 *
 * The decoder (`decoder.ts`) and the loading of weights belong to each engine.
 */
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import { InoriginError } from '../error.ts'
import type { Decoder } from './decoder.ts'
import type { Engine, EngineSetup, Files } from './engine.ts'
import type { ImageReader, PromptImage } from './images.ts'
import { unlessAborted } from '../values/promises.ts'
import { loadingCancelled } from './failure.ts'
import { createOutputFactory, type DecodeLoopSetup, runDecodeLoop } from './run/decode-loop.ts'
import { ModelConstraints } from './run/constraints.ts'
import { prefixCacheBudget } from './run/prefix-cache.ts'
import { Scheduler } from './run/scheduler.ts'
import { type ModelConfig, readConfig } from './text/config.ts'
import { createPromptBuilder } from './text/prompt-tokenizer.ts'

/** The part of an engine that differs between runtimes: it loads a decoder. */
export interface DecoderBackend {
  /** Loads the weights into a decoder. */
  load(options: DecoderLoadOptions, weights: Files, signal: AbortSignal): Promise<LoadedDecoder>
  /**
   * `true` if logits of several tokens cost little more than those of one, so that drafts pay off.
   */
  drafts: boolean
  /** Reader of images in prompts; `null` if the model sees none. Default: `null`. */
  images?: (ImageReader & { close(): void }) | null
}

/** Options of {@link DecoderBackend.load} that are known before the weights are read. */
export interface DecoderLoadOptions
  extends
    Pick<
      EngineSetup,
      | 'device'
      | 'runtime'
      | 'features'
      | 'verdict'
      | 'threads'
      | 'encoderComparison'
      | 'onEncoderComparison'
    >,
    Pick<ModelConfig, 'contextWindow' | 'firstPosition' | 'heads'> {
  /** Called when the weights are on the device and the warm-up begins. */
  onWarm?: () => void
}

/** A loaded model. */
export interface LoadedDecoder {
  decoder: Decoder
  /** Result of the GPU self-test; `null` on `wasm`. */
  verdict: GpuVerdict | null
  /**
   * Frees the failed decoder and resolves to an empty one with the same weights on a new device.
   * Rejects if no device is available.
   */
  reopen(signal: AbortSignal): Promise<Decoder>
  /** Frees the model and the device. */
  release(): Promise<void>
}

/**
 * Creates an engine around any decoder. Rejects if the model's tokenizer or configuration is
 * unusable.
 */
export async function openDecoderEngine(
  { texts, maxInputTokens, ...setup }: EngineSetup,
  backend: DecoderBackend,
): Promise<Engine> {
  const config = await readConfig(texts)
  const { endTokens, firstPosition, heads, templates } = config
  const contextWindow = Math.min(maxInputTokens, config.contextWindow)
  const createOutput = createOutputFactory(config)
  const images = backend.images ?? null
  const { prepare, encodeTrusted } = createPromptBuilder(config, contextWindow, images?.placeholder)
  const constraints = new ModelConstraints(config, setup.constraints)
  const closing = new AbortController()
  const loadOptions = { ...setup, contextWindow, firstPosition, heads }
  const loader = createLoader(backend, loadOptions, closing.signal)

  const check: Engine['check'] = async (constraint) => {
    const matcher = await constraints.open(constraint, closing.signal)
    matcher.close()
    return [...new Set(matcher.loosened.map(({ keyword }) => keyword))]
  }

  const generate: Engine['generate'] = (prompt, options) => {
    const { model } = loader
    if (!model) {
      throw new InoriginError('internal', 'Cannot generate: the engine is not loaded.')
    }
    const decodeLoopSetup: DecodeLoopSetup = {
      scheduler: model.scheduler,
      constraints,
      encode: encodeTrusted,
      endTokens,
      contextWindow,
      drafts: backend.drafts,
    }
    const run = () => runDecodeLoop(decodeLoopSetup, createOutput(prompt, options), prompt, options)
    return images && prompt.images ? whileRetained(images, prompt.images, run) : run()
  }

  const close: Engine['close'] = async () => {
    closing.abort()
    await loader.close()
    constraints.close()
    images?.close()
  }

  return {
    contextWindow,
    template: templates.tools ?? templates.plain,
    images,
    get verdict() {
      return loader.model?.loaded.verdict ?? null
    },
    load: loader.load,
    prepare,
    check,
    generate,
    close,
  }
}

interface Loader {
  /** The loaded model; `null` before it is loaded and after `close`. */
  readonly model: { loaded: LoadedDecoder; scheduler: Scheduler } | null
  load: Engine['load']
  /** Waits for the load that is running, and frees the model. */
  close(): Promise<void>
}

/** Creates a loader, whose loads end when `closing` aborts. */
function createLoader(
  backend: DecoderBackend,
  options: Omit<DecoderLoadOptions, 'onWarm'>,
  closing: AbortSignal,
): Loader {
  let model: Loader['model'] = null
  /** The most recent load. It never rejects. */
  let loading: Promise<unknown> = Promise.resolve()

  const loadOnce: Engine['load'] = async (weights, signal, onWarm) => {
    if (signal.aborted) throw loadingCancelled()
    if (model) return
    const loaded = await backend.load({ ...options, onWarm }, weights, signal)
    if (signal.aborted) {
      await loaded.release()
      throw loadingCancelled()
    }
    const scheduler = new Scheduler({
      decoder: loaded.decoder,
      budget: prefixCacheBudget(),
      reopen: () => loaded.reopen(closing),
    })
    model = { loaded, scheduler }
  }

  return {
    get model() {
      return model
    },
    /** Loads run one after the other, so that the second one finds the scheduler of the first. */
    load(weights, callerSignal, onWarm) {
      const signal = AbortSignal.any([callerSignal, closing])
      const loadDone = loading.then(() => loadOnce(weights, signal, onWarm))
      loading = loadDone.catch(() => undefined)
      return unlessAborted(loadDone, signal, loadingCancelled)
    },
    async close() {
      await loading
      await model?.scheduler.close()
      await model?.loaded.release()
      model = null
    },
  }
}

/** Runs a generation, during which the rows of its images can be computed. */
async function* whileRetained(
  reader: ImageReader,
  images: readonly PromptImage[],
  run: () => ReturnType<Engine['generate']>,
): ReturnType<Engine['generate']> {
  const release = reader.retain(images)
  try {
    return yield* run()
  } finally {
    release()
  }
}
