/** Measures WASM with a number of threads, in a worker that runs nothing else. */
import { InoriginError } from '../../error.ts'
import { remote } from '../../link/remote.ts'
import { unlessAborted } from '../../values/unless-aborted.ts'
import { MODEL_METHODS, type ModelService } from './model-service.ts'
import { startModelThread } from './model-thread.ts'

/** Resolves with milliseconds of a fixed piece of work. Rejects when the signal aborts. */
export async function measureThreads(
  assets: string,
  threads: number,
  signal: AbortSignal,
): Promise<number> {
  const closing = new AbortController()
  const subject = { tag: '@inorigin/threads', type: 'predictor' } as const
  const { link } = startModelThread(subject, assets, closing, () => undefined)
  const worker = remote<ModelService>(link, MODEL_METHODS)
  const runtime = new URL('ort/', assets).href
  try {
    const caller = { key: null, signal: closing.signal }
    return await unlessAborted(worker.measureThreads({ runtime, threads }, caller), signal)
  } finally {
    closing.abort(new InoriginError('aborted', 'The measurement of WASM threads has ended.'))
  }
}
