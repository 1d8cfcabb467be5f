/**
 * The engine for models compiled by MLC. WebLLM computes only the logits. Chat template, sampler,
 * constraints and detokenizer are the same as for any other model.
 */
import { InoriginError } from '../../error.ts'
import { type LoadedDecoder, openDecoderEngine } from '../decoder-engine.ts'
import type { Engine, EngineSetup, Files, GenerationUpdate, OpenEngine } from '../engine.ts'
import { loadingCancelled, retryOnLostGpu } from '../failure.ts'
import { toConfigFiles, withOverrides } from './config-files.ts'
import { WebllmDecoder } from './decoder.ts'
import { type LoadedPipeline, openPipeline, type PipelineOptions } from './pipeline.ts'

/** Function that loads a model's files into a pipeline, which computes its logits. */
type OpenPipeline = (files: Files, options: PipelineOptions) => Promise<LoadedPipeline>

/** Opens an engine for a model compiled by MLC. */
export const openWebllm: OpenEngine = (setup) => openWithPipeline(openPipeline, setup)

/** Opens an engine over any implementation of the pipeline, such as WebLLM. */
export async function openWithPipeline(open: OpenPipeline, setup: EngineSetup): Promise<Engine> {
  if (setup.device !== 'webgpu') {
    throw new InoriginError('internal', 'Models compiled by MLC run only on WebGPU.')
  }
  const texts = await withOverrides(setup.texts, setup.overrides)
  const engine = await openDecoderEngine(
    { ...setup, texts: await toConfigFiles(texts) },
    {
      load: ({ contextWindow, onWarm }, weights, signal) => {
        const files = new Map([...texts, ...weights])
        return loadDecoder((until) => open(files, { contextWindow, signal: until }), signal, onWarm)
      },
      drafts: false,
    },
  )
  return Object.assign(engine, { generate: runOneByOne(engine.generate.bind(engine)) })
}

async function loadDecoder(
  open: (signal: AbortSignal) => Promise<LoadedPipeline>,
  signal: AbortSignal,
  onWarm?: () => void,
): Promise<LoadedDecoder> {
  let pipeline = await open(signal)
  let decoder = new WebllmDecoder(pipeline)
  onWarm?.()
  try {
    await warmUp(pipeline)
    if (signal.aborted) throw loadingCancelled()
  } catch (thrown) {
    await pipeline.release()
    throw thrown
  }
  return {
    get decoder() {
      return decoder
    },
    verdict: null,
    async reopen(until) {
      await pipeline.release()
      if (until.aborted) throw loadingCancelled()
      pipeline = await retryOnLostGpu(() => open(until), until)
      decoder = new WebllmDecoder(pipeline)
      return decoder
    },
    release: () => pipeline.release(),
  }
}

/** Runs a prefill and a decode step once, so that a failure shows when the model is loaded. */
async function warmUp(pipeline: LoadedPipeline): Promise<void> {
  for (const tokens of [[0, 0], [0]]) {
    const scores = await pipeline.forward(tokens)
    if (scores.some(Number.isFinite) && !scores.some(Number.isNaN)) continue
    const what = 'The model produced NaN or Infinity on this GPU.'
    const todo =
      'Choose another implementation, such as one with 32-bit floats, or another browser.'
    throw new InoriginError('unavailable', `${what} ${todo}`, { code: 'gpu_untrusted' })
  }
  await pipeline.reset()
}

/** Returns a `generate` that runs one generation at a time. */
function runOneByOne(generate: Engine['generate']): Engine['generate'] {
  const queue = new GenerationQueue()
  return async function* (prompt, options) {
    const ticket = queue.add(options.signal)
    const running = generate(prompt, options)
    let steer: GenerationUpdate | undefined
    try {
      for (;;) {
        await ticket.acquire()
        const { value, done } = await running.next(steer)
        if (done) return value
        ticket.markIdle()
        steer = yield value
      }
    } finally {
      await running.return(undefined as never).catch(() => undefined)
      ticket.release()
    }
  }
}

/**
 * A queue for the only KV cache of a model: two interleaved generations would each discard the
 * other's KV cache. Each generation runs to its end, in the order of arrival. A generation that
 * stops asking for tokens while others wait loses its lease.
 */
export class GenerationQueue {
  readonly #idleTimeoutMs: number
  #holder: symbol | null = null
  #idleTimer: ReturnType<typeof setTimeout> | undefined
  /** `true` once the holder has been idle for longer than the timeout. */
  #isIdleTooLong = false
  /** Functions that give the lease to those who wait for it, in order. */
  readonly #waiters = new Map<symbol, () => void>()

  /** `idleTimeoutMs` is the time that an idle holder keeps the lease while others wait. */
  constructor(idleTimeoutMs = 1_000) {
    this.#idleTimeoutMs = idleTimeoutMs
  }

  /** Adds a generation, without waiting for the lease. */
  add(signal: AbortSignal) {
    const ticket = Symbol('ticket')
    return {
      /** Resolves when this generation holds the lease; rejects with `aborted` at an abort. */
      acquire: (): Promise<void> => {
        if (signal.aborted) return Promise.reject(canceled())
        if (this.#holder !== ticket && this.#holder !== null) return this.#wait(ticket, signal)
        this.#give(ticket)
        return Promise.resolve()
      },
      /** Marks the holder as idle; if it does not acquire again in time, the lease goes on. */
      markIdle: (): void => {
        if (this.#holder !== ticket) return
        this.#idleTimer = setTimeout(() => {
          if (this.#waiters.size > 0) this.#passLease()
          else this.#isIdleTooLong = true
        }, this.#idleTimeoutMs)
      },
      /** Ends the generation and releases its lease. */
      release: (): void => {
        this.#waiters.delete(ticket)
        if (this.#holder === ticket) this.#passLease()
      },
    }
  }

  #wait(ticket: symbol, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#waiters.delete(ticket)
        reject(canceled())
      }
      signal.addEventListener('abort', stop, { once: true })
      this.#waiters.set(ticket, () => {
        signal.removeEventListener('abort', stop)
        resolve()
      })
      if (this.#isIdleTooLong) this.#passLease()
    })
  }

  #give(ticket: symbol | null): void {
    clearTimeout(this.#idleTimer)
    this.#isIdleTooLong = false
    this.#holder = ticket
  }

  #passLease(): void {
    const [[ticket, resolve] = [null, null]] = this.#waiters
    this.#give(ticket)
    if (ticket) this.#waiters.delete(ticket)
    resolve?.()
  }
}

const canceled = (): InoriginError => new InoriginError('aborted', 'The request was canceled.')
