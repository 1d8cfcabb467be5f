/**
 * What all engines are made of but the scores: puts together what the folders beside it do.
 *
 * `text/` turns a conversation into the tokens of a prompt: the model's own chat template writes it,
 * with the signs of structure in what users wrote disguised, and the tokenizer cuts it; on the way
 * back it turns tokens into text. `run/` lets answers share a decoder: each asks for scores, chooses
 * by `sampling/`, within what `constraint/` allows, and tells its text. The decoder (`decoder.ts`) is
 * an engine's own, and how weights become one.
 */
import type { GpuVerdict } from '../device/verdict.ts'
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

/** What computes the scores, where the rest of an engine is the same. */
export interface Decoding {
  load(options: LoadOptions, weights: Files, signal: AbortSignal): Promise<Loaded>
  /** Whether scores of several tokens cost little more than those of one. */
  drafts: boolean
}

/** What is known of a model before its weights are here. */
export interface LoadOptions
  extends
    Pick<EngineSetup, 'device' | 'runtime' | 'features' | 'verdict'>,
    Pick<ModelConfig, 'contextWindow' | 'firstPosition' | 'heads'> {
  /** Told when the weights are where they compute, and the first runs begin. */
  onWarm?: () => void
}

export interface Loaded {
  decoder: Decoder
  /** What is known of the GPU now; `null` on `wasm`. */
  verdict: GpuVerdict | null
  /**
   * Frees the decoder, which failed, and gives another one on a new device, with the same weights
   * and nothing in it. Rejects when the device is not to be had any more.
   */
  reopen(signal: AbortSignal): Promise<Decoder>
  /** Frees the model and the device. */
  release(): Promise<void>
}

/** An engine around any decoder. */
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
  /** The last load that was asked for; it never rejects. */
  let loading: Promise<unknown> = Promise.resolve()

  /** One after the other, so that the second finds what the first has loaded. */
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
      throw new InoriginError(
        'internal',
        'The engine was asked to generate while it was not loaded.',
      )
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

/** What the work gives, or `aborted` as soon as the signal says so. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(loadingCancelled())
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
