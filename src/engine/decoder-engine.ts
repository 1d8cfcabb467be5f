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
import type { Constraint } from '../constraint/index.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import { InoriginError } from '../error.ts'
import type { Decoder, IdleRun } from './decoder.ts'
import type { Engine, EngineSetup, Files, GenerateOptions, Prompt } from './engine.ts'
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
  /** `true` if logits of several tokens cost little more than of one, so that drafts pay off. */
  drafts: boolean
  /** Reader of images in prompts; `null` if the model sees none. Default: `null`. */
  images?: (ImageReader & { close(): void }) | null
}

/** Options of {@link DecoderBackend.load} that are known before the weights are read. */
export interface DecoderLoadOptions
  extends
    Omit<EngineSetup, 'texts' | 'maxInputTokens' | 'constraints'>,
    Pick<ModelConfig, 'contextWindow' | 'firstPosition' | 'heads' | 'kvHeads' | 'headSize'> {
  /** Called when the weights are on the device and the warm-up begins. */
  onWarm?: () => void
}

/** A loaded model. */
export interface LoadedDecoder {
  decoder: Decoder
  /** Result of the GPU self-test; `null` on `wasm`. */
  verdict: GpuVerdict | null
  /** Runs that warm the decoder up further, once it answers. Default: none. */
  idleRuns?: readonly IdleRun[]
  /** Frees the failed decoder and resolves to an empty one on a new device, or rejects. */
  reopen(signal: AbortSignal): Promise<Decoder>
  /** Frees the model and the device. */
  release(): Promise<void>
}

/** Opens an engine around any decoder. Rejects if the tokenizer or configuration is unusable. */
export async function openDecoderEngine(
  { texts, maxInputTokens, ...setup }: EngineSetup,
  backend: DecoderBackend,
): Promise<Engine> {
  const config = await readConfig(texts)
  const contextWindow = Math.min(maxInputTokens, config.contextWindow)
  return new DecoderEngine(setup, backend, { ...config, contextWindow })
}

class DecoderEngine implements Engine {
  readonly contextWindow: number
  readonly template: string
  readonly images: DecoderBackend['images']
  readonly prepare: Engine['prepare']
  readonly #backend: DecoderBackend
  readonly #loadOptions: DecoderLoadOptions
  readonly #constraints: ModelConstraints
  readonly #createOutput: ReturnType<typeof createOutputFactory>
  readonly #loopSetup: Omit<DecodeLoopSetup, 'scheduler'>
  readonly #closing = new AbortController()
  /** The loaded model; `null` before it is loaded and after `close`. */
  #model: { loaded: LoadedDecoder; scheduler: Scheduler } | null = null
  /** The most recent load. It never rejects. */
  #loading: Promise<unknown> = Promise.resolve()

  constructor(
    setup: Omit<EngineSetup, 'texts' | 'maxInputTokens'>,
    backend: DecoderBackend,
    config: ModelConfig,
  ) {
    const { contextWindow, endTokens, firstPosition, templates } = config
    const { heads, kvHeads, headSize } = config
    this.contextWindow = contextWindow
    this.template = templates.tools ?? templates.plain
    this.images = backend.images ?? null
    this.#backend = backend
    this.#loadOptions = {
      ...setup,
      contextWindow,
      firstPosition,
      heads,
      kvHeads,
      headSize,
    }
    this.#createOutput = createOutputFactory(config)
    const builder = createPromptBuilder(config, contextWindow, this.images?.placeholder)
    this.prepare = builder.prepare
    this.#constraints = new ModelConstraints(config, setup.constraints)
    this.#loopSetup = {
      constraints: this.#constraints,
      encode: builder.encodeTrusted,
      endTokens,
      contextWindow,
      drafts: backend.drafts,
    }
  }

  get verdict(): GpuVerdict | null {
    return this.#model?.loaded.verdict ?? null
  }

  /** Loads run one after the other, so that the second one finds the scheduler of the first. */
  load(weights: Files, callerSignal: AbortSignal, onWarm?: () => void): Promise<void> {
    const signal = AbortSignal.any([callerSignal, this.#closing.signal])
    const loadDone = this.#loading.then(() => this.#load(weights, signal, onWarm))
    this.#loading = loadDone.catch(() => undefined)
    return unlessAborted(loadDone, signal, loadingCancelled)
  }

  async #load(weights: Files, signal: AbortSignal, onWarm?: () => void): Promise<void> {
    if (signal.aborted) throw loadingCancelled()
    if (this.#model) return
    const loaded = await this.#backend.load({ ...this.#loadOptions, onWarm }, weights, signal)
    if (signal.aborted) {
      await loaded.release()
      throw loadingCancelled()
    }
    const scheduler = new Scheduler({
      decoder: loaded.decoder,
      budget: prefixCacheBudget(),
      idleRuns: loaded.idleRuns,
      reopen: () => loaded.reopen(this.#closing.signal),
    })
    this.#model = { loaded, scheduler }
  }

  async check(constraint: Constraint): Promise<readonly string[]> {
    const matcher = await this.#constraints.open(constraint, this.#closing.signal)
    matcher.close()
    return [...new Set(matcher.loosened.map(({ keyword }) => keyword))]
  }

  generate(prompt: Prompt, options: GenerateOptions): ReturnType<Engine['generate']> {
    if (!this.#model) {
      throw new InoriginError('internal', 'Cannot generate: the engine is not loaded.')
    }
    const setup = { ...this.#loopSetup, scheduler: this.#model.scheduler }
    const run = () => runDecodeLoop(setup, this.#createOutput(prompt, options), prompt, options)
    const { images } = this
    return images && prompt.images ? whileRetained(images, prompt.images, run) : run()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#loading
    await this.#model?.scheduler.close()
    await this.#model?.loaded.release()
    this.#model = null
    this.#constraints.close()
    this.images?.close()
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
