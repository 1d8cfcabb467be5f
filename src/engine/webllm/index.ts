/**
 * The engine for models that MLC compiled. WebLLM does what it alone can, computing scores; prompts,
 * choices, constraints and texts are those of any other model.
 */
import { InoriginError } from '../../error.ts'
import { type Loaded, openDecoding } from '../decoding.ts'
import type { Engine, EngineSetup, Files, OpenEngine } from '../engine.ts'
import { loadingCancelled } from '../failure.ts'
import { createDecoder } from './decoder.ts'
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
      load: ({ contextWindow }, weights, signal) =>
        loadDecoder((until) => open(new Map([...texts, ...weights]), { contextWindow, signal: until }), signal),
      drafts: false,
    },
  )
  return { ...engine, generate: oneAfterTheOther(engine) }
}

async function loadDecoder(
  open: (signal: AbortSignal) => Promise<LoadedPipeline>,
  signal: AbortSignal,
): Promise<Loaded> {
  let pipeline = await open(signal)
  let decoder = createDecoder(pipeline)
  return {
    get decoder() {
      return decoder
    },
    verdict: null,
    async reopen(until) {
      await pipeline.release()
      if (until.aborted) throw loadingCancelled()
      pipeline = await open(until)
      decoder = createDecoder(pipeline)
      return decoder
    },
    release: () => pipeline.release(),
  }
}

/** Two at once would each throw away what the other has computed, token by token. */
function oneAfterTheOther(engine: Engine): Engine['generate'] {
  let last: Promise<unknown> = Promise.resolve()
  return async function* (prompt, options) {
    const before = last
    let leave = (): void => {}
    last = new Promise<void>((resolve) => (leave = resolve))
    try {
      await Promise.race([before, aborted(options.signal)])
      return yield* engine.generate(prompt, options)
    } finally {
      // Behind those who came before, though this one may have given up on them.
      void before.then(leave)
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new InoriginError('aborted', 'The request was cancelled.'))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
}
