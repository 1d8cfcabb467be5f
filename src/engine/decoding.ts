/**
 * Implements an engine around any decoder, from the folders beside this file.
 *
 * `text/` renders a conversation with the model's chat template and tokenizes it into a prompt.
 * Special tokens in user text are disguised first. `text/` also detokenizes the answer.
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
import { loadingCancelled } from './failure.ts'
import { answer, type AnswerSetup } from './run/answer.ts'
import { constraintsOf } from './run/constrain.ts'
import { createOutputs } from './run/output.ts'
import { prefixBudget } from './run/prefix.ts'
import { createScheduler, type Scheduler } from './run/scheduler.ts'
import { type ModelConfig, readConfig } from './text/config.ts'
import { createPrompts } from './text/prompt.ts'

/** The part of an engine that differs between runtimes: it loads a decoder. */
export interface Decoding {
  /** Loads the weights into a decoder. */
  load(options: LoadOptions, weights: Files, signal: AbortSignal): Promise<Loaded>
  /**
   * `true` if logits of several tokens cost little more than those of one, so that drafts pay off.
   */
  drafts: boolean
}

/** Options of {@link Decoding.load} that are known before the weights are read. */
export interface LoadOptions
  extends
    Pick<EngineSetup, 'device' | 'runtime' | 'features' | 'verdict'>,
    Pick<ModelConfig, 'contextWindow' | 'firstPosition' | 'heads'> {
  /** Called when the weights are on the device and the warm-up begins. */
  onWarm?: () => void
}

/** A loaded model. */
export interface Loaded {
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
export async function openDecoding(
  { texts, maxInputTokens, ...setup }: EngineSetup,
  decoding: Decoding,
): Promise<Engine> {
  const config = await readConfig(texts)
  const { endTokens, firstPosition, heads, templates } = config
  const contextWindow = Math.min(maxInputTokens, config.contextWindow)
  const outputs = createOutputs(config)
  const { prepare, trusted } = createPrompts(config, contextWindow)
  const constraints = constraintsOf(config)
  const closing = new AbortController()
  let loaded: Loaded | null = null
  let scheduler: Scheduler | null = null
  /** The most recent load. It never rejects. */
  let loading: Promise<unknown> = Promise.resolve()

  /** Loads run one after the other, so that the second one finds the scheduler of the first. */
  const load: Engine['load'] = (weights, asked, onWarm) => {
    const signal = AbortSignal.any([asked, closing.signal])
    const done = loading.then(() => begin(weights, signal, onWarm))
    loading = done.catch(() => undefined)
    return unlessAborted(done, signal)
  }

  const begin: Engine['load'] = async (weights, signal, onWarm) => {
    if (signal.aborted) throw loadingCancelled()
    if (scheduler) return
    const options = { ...setup, contextWindow, firstPosition, heads, onWarm }
    const arrived = await decoding.load(options, weights, signal)
    if (signal.aborted) {
      await arrived.release()
      throw loadingCancelled()
    }
    loaded = arrived
    scheduler = createScheduler({
      decoder: arrived.decoder,
      budget: prefixBudget(),
      reopen: () => arrived.reopen(closing.signal),
    })
  }

  const check: Engine['check'] = async (constraint) => {
    const matcher = await constraints.open(constraint, closing.signal)
    matcher.close()
  }

  const generate: Engine['generate'] = (prompt, options) => {
    if (!scheduler) {
      throw new InoriginError('internal', 'Cannot generate: the engine is not loaded.')
    }
    const answering: AnswerSetup = {
      scheduler,
      constraints,
      encode: trusted,
      endTokens,
      contextWindow,
      drafts: decoding.drafts,
    }
    return answer(answering, outputs(prompt, options), prompt, options)
  }

  const close: Engine['close'] = async () => {
    closing.abort()
    await loading
    await scheduler?.close()
    scheduler = null
    await loaded?.release()
    loaded = null
    constraints.close()
  }
  const template = templates.tools ?? templates.plain
  return {
    contextWindow,
    template,
    get verdict() {
      return loaded?.verdict ?? null
    },
    load,
    prepare,
    check,
    generate,
    close,
  }
}

/** Settles as `work` does, or rejects with `aborted` as soon as `signal` aborts. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(loadingCancelled())
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
