/**
 * The engine for models compiled by MLC. WebLLM computes only the logits. Chat template, sampler,
 * constraints and detokenizer are the same as for any other model.
 */
import { InoriginError } from '../../error.ts'
import { type LoadedDecoder, openDecoderEngine } from '../decoder-engine.ts'
import type { Engine, EngineSetup, Files, GenerationUpdate, OpenEngine } from '../engine.ts'
import { loadingCancelled, retryOnLostGpu } from '../failure.ts'
import { toConfigFiles, withOverrides } from './config-files.ts'
import { createDecoder } from './decoder.ts'
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
  return { ...engine, generate: runOneByOne(engine) }
}

async function loadDecoder(
  open: (signal: AbortSignal) => Promise<LoadedPipeline>,
  signal: AbortSignal,
  onWarm?: () => void,
): Promise<LoadedDecoder> {
  let pipeline = await open(signal)
  let decoder = createDecoder(pipeline)
  onWarm?.()
  try {
    await warmUp(pipeline)
  } catch (thrown) {
    await pipeline.release()
    throw thrown
  }
  if (signal.aborted) {
    await pipeline.release()
    throw loadingCancelled()
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
      decoder = createDecoder(pipeline)
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
function runOneByOne(engine: Engine): Engine['generate'] {
  const queue = createGenerationQueue()
  return async function* (prompt, options) {
    const ticket = queue.add(options.signal)
    const running = engine.generate(prompt, options)
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

// A queue for the only KV cache of a model: two interleaved generations would each discard the
// other's KV cache. Each generation runs to its end, in the order of arrival. A generation that
// stops asking for tokens while others wait loses its lease.

/** Queue of generations that share one lease. */
interface GenerationQueue {
  /** Adds a generation, without waiting for the lease. */
  add(signal: AbortSignal): QueueTicket
}

/** One generation's place in the queue. */
interface QueueTicket {
  /** Resolves when this generation holds the lease; rejects with `aborted` if its signal aborts. */
  acquire(): Promise<void>
  /**
   * Marks the holder as idle; the lease goes to a waiter if `acquire` is not called again in time.
   */
  markIdle(): void
  /** Ends the generation and releases its lease. */
  release(): void
}

interface Waiter {
  ticket: symbol
  resolve: () => void
}

/**
 * Creates an empty queue. `idleTimeoutMs` is the time in milliseconds that an idle holder keeps the
 * lease while others wait; the default is 1000.
 */
export function createGenerationQueue(idleTimeoutMs = 1_000): GenerationQueue {
  let holder: symbol | null = null
  let idleTimer: ReturnType<typeof setTimeout> | undefined
  /** `true` once the holder has been idle for longer than `idleTimeoutMs`. */
  let isIdleTooLong = false
  let waiters: Waiter[] = []

  const passLease = (): void => {
    clearTimeout(idleTimer)
    isIdleTooLong = false
    const [next] = waiters.splice(0, 1)
    holder = next?.ticket ?? null
    next?.resolve()
  }

  const add: GenerationQueue['add'] = (signal) => {
    const ticket = Symbol('ticket')
    const acquire = (): Promise<void> => {
      if (signal.aborted) return Promise.reject(canceled())
      if (holder === ticket || holder === null) {
        holder = ticket
        isIdleTooLong = false
        clearTimeout(idleTimer)
        return Promise.resolve()
      }
      return new Promise((resolve, reject) => {
        const stop = (): void => {
          waiters = waiters.filter((each) => each.ticket !== ticket)
          reject(canceled())
        }
        signal.addEventListener('abort', stop, { once: true })
        waiters.push({
          ticket,
          resolve: () => {
            signal.removeEventListener('abort', stop)
            resolve()
          },
        })
        if (isIdleTooLong) passLease()
      })
    }
    const markIdle = (): void => {
      if (holder !== ticket) return
      idleTimer = setTimeout(() => {
        if (waiters.length > 0) passLease()
        else isIdleTooLong = true
      }, idleTimeoutMs)
    }
    const release = (): void => {
      waiters = waiters.filter((each) => each.ticket !== ticket)
      if (holder === ticket) passLease()
    }
    return { acquire, markIdle, release }
  }
  return { add }
}

const canceled = (): InoriginError => new InoriginError('aborted', 'The request was canceled.')
