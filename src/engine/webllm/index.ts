/**
 * The engine for models that MLC compiled. WebLLM does what it alone can, computing scores; prompts,
 * choices, constraints and texts are those of any other model.
 */
import { InoriginError } from '../../error.ts'
import { type Loaded, openDecoding } from '../decoding.ts'
import type { Engine, EngineSetup, Files, OpenEngine, Steer } from '../engine.ts'
import { loadingCancelled } from '../failure.ts'
import { persist } from '../persist.ts'
import { createDecoder } from './decoder.ts'
import { createFloor } from './floor.ts'
import { type LoadedPipeline, openPipeline, type PipelineOptions } from './pipeline.ts'
import { textsOf, withOverrides } from './texts.ts'

/** Loads a model's files into what computes its scores. */
export type OpenPipeline = (files: Files, options: PipelineOptions) => Promise<LoadedPipeline>

export const openWebllm: OpenEngine = (setup) => openOver(openPipeline, setup)

/** The engine over whatever is spoken to as WebLLM is. */
export async function openOver(open: OpenPipeline, setup: EngineSetup): Promise<Engine> {
  if (setup.device !== 'webgpu') {
    throw new InoriginError('internal', 'Models compiled by MLC run on WebGPU alone.')
  }
  const texts = await withOverrides(setup.texts, setup.overrides)
  const engine = await openDecoding(
    { ...setup, texts: await textsOf(texts) },
    {
      load: ({ contextWindow, onWarm }, weights, signal) => {
        const files = new Map([...texts, ...weights])
        return loadDecoder((until) => open(files, { contextWindow, signal: until }), signal, onWarm)
      },
      drafts: false,
    },
  )
  return { ...engine, generate: inTurn(engine) }
}

async function loadDecoder(
  open: (signal: AbortSignal) => Promise<LoadedPipeline>,
  signal: AbortSignal,
  onWarm?: () => void,
): Promise<Loaded> {
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
      pipeline = await persist(() => open(until), until)
      decoder = createDecoder(pipeline)
      return decoder
    },
    release: () => pipeline.release(),
  }
}

/** Both kinds of forward once: what does not work is known before anybody asks. */
async function warmUp(pipeline: LoadedPipeline): Promise<void> {
  for (const tokens of [[0, 0], [0]]) {
    const scores = await pipeline.forward(tokens)
    if (scores.some(Number.isFinite) && !scores.some(Number.isNaN)) continue
    const what = 'The GPU computes what are no numbers with this model.'
    const todo =
      'Choose another implementation, such as one with 32-bit floats, or another browser.'
    throw new InoriginError('unavailable', `${what} ${todo}`, { code: 'gpu_untrusted' })
  }
  await pipeline.reset()
}

/** Answers one after the other. */
function inTurn(engine: Engine): Engine['generate'] {
  const floor = createFloor()
  return async function* (prompt, options) {
    const seat = floor.enter(options.signal)
    const running = engine.generate(prompt, options)
    let steer: Steer | undefined
    try {
      for (;;) {
        await seat.take()
        const { value, done } = await running.next(steer)
        if (done) return value
        seat.rest()
        steer = yield value
      }
    } finally {
      await running.return(undefined as never).catch(() => undefined)
      seat.leave()
    }
  }
}
