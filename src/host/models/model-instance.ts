/**
 * One loaded or loading implementation: its files, its worker and its reference count. Terminating
 * a worker is the only way to free WASM memory, so each implementation has its own worker.
 */
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { comparisonFromError, gpuDiffers, type GpuComparison } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'
import { remote } from '../../link/ask.ts'
import type { LoadProgress, Remote } from '../../types/index.ts'
import { type LoadOptions, startLoad } from './implementation-load.ts'
import { type LatestValue, loadPaused } from './event-hub.ts'
import { MODEL_METHODS, type ModelService } from './model-service.ts'
import { startModelThread } from './model-thread.ts'

export interface ModelInstance {
  readonly entry: Entry
  readonly implementation: Implementation
  /** The worker. It can be called from the start, but only answers some calls before it is open. */
  readonly worker: Remote<ModelService>
  /** Signal that aborts when the worker ends, with an `InoriginError` as its reason. */
  readonly ended: AbortSignal
  /** Promise that resolves when the small files are present, so that requests can be accepted. */
  readonly opened: Promise<void>
  readonly ready: boolean
  /** Progress of the load. It is complete when the load is. */
  readonly progress: LatestValue<LoadProgress>
  /** Number of current and waiting users, including requests that pages sent over direct ports. */
  readonly referenceCount: number
  /** Number of open requests that pages sent over direct ports. */
  readonly directRequests: number
  /** Loads the weights once. Resolves when requests can be answered. */
  load(): Promise<void>
  /**
   * Adds a reference and returns the function that releases it. A load is canceled when its last
   * reference is released before it is ready.
   */
  retain(): () => void
  /**
   * Resolves with the error to report for a failed run; its message refers to this catalog. Also
   * terminates the worker if its thread cannot recover: after a device error, and if the weights in
   * its memory came from damaged files.
   */
  explainFailure(error: unknown): Promise<unknown>
  /** Opens a port that leads directly to the worker. It accepts the ports of `predict` calls. */
  openDirectPort(): MessagePort
  /**
   * Terminates the worker. `replaced` means that another implementation needs the memory or is used
   * instead, `paused` that the user ended the load. The default is `unloaded`.
   */
  close(why?: 'unloaded' | 'replaced' | 'paused'): void
}

export interface ModelInstanceOptions extends LoadOptions {
  /** Resolves with the error of the worker, extended with the remedy that the catalog offers. */
  explain(error: unknown, entry: Entry, implementation: Implementation): Promise<unknown>
  /** Called when a page starts or finishes a request over a direct port. */
  onDirectUse(): void
  /** Called when the implementation was closed or failed to load. */
  onClose(instance: ModelInstance): void
}

/** Codes of errors after which a runtime cannot be used again in its thread. */
const FATAL_DEVICE_CODES: ReadonlySet<string> = new Set([
  'device_lost',
  'gpu_error',
  'gpu_untrusted',
  'out_of_memory',
  'runtime_crashed',
])

const codeOf = (error: unknown) => (error instanceof InoriginError ? error.code : undefined)

const isFatal = (error: unknown): boolean => FATAL_DEVICE_CODES.has(codeOf(error) ?? '')

/** Starts the worker and loads the small files. The weights are loaded by `load`. */
export function createModelInstance(options: ModelInstanceOptions): ModelInstance {
  const { entry, implementation, onClose } = options
  const explain = (error: unknown) => options.explain(error, entry, implementation)
  const closing = new AbortController()
  const thread = startModelThread(entry, options.assets, closing, options.onDirectUse, onComparison)
  const worker = remote<ModelService>(thread.link, MODEL_METHODS)
  const loading = startLoad(options, worker, closing, explain)
  const references = createReferences((count) => {
    if (count + thread.directRequests === 0 && !loading.ready) close()
  })

  /**
   * Records the comparison. The worker of a predictor ends if the GPU is wrong, because it computes
   * nothing more. A language model goes on with its image encoder on the CPU.
   */
  function onComparison(comparison: GpuComparison): void {
    options.comparisons.record(entry, implementation, comparison)
    if (comparison.agrees || entry.type === 'model' || closing.signal.aborted) return
    options.onProgress({ ...loading.progress.latest, gpuDifference: comparison.why })
    closing.abort(gpuDiffers(comparison))
  }

  function close(why: 'unloaded' | 'replaced' | 'paused' = 'unloaded'): void {
    if (why === 'paused') return closing.abort(loadPaused(entry.tag))
    const what = `${entry.tag} was ${why} while it was in use. Try again.`
    closing.abort(new InoriginError('unavailable', what, { code: why, retryAfter: 1 }))
  }

  const instance: ModelInstance = {
    entry,
    implementation,
    worker,
    ended: closing.signal,
    opened: loading.opened,
    progress: loading.progress,
    get ready() {
      return loading.ready
    },
    get referenceCount() {
      return references.count + thread.directRequests
    },
    get directRequests() {
      return thread.directRequests
    },
    load: loading.finish,
    retain: references.add,
    async explainFailure(error) {
      const comparison = comparisonFromError(error)
      if (comparison) onComparison(comparison)
      const explained = await explain(error)
      if (isFatal(error) || codeOf(explained) === 'storage_damaged') closing.abort(explained)
      return explained
    },
    openDirectPort: thread.openDirectPort,
    close,
  }
  closing.signal.addEventListener('abort', () => onClose(instance))
  return instance
}

/** Counts references. `onRelease` gets the number that is left. */
function createReferences(onRelease: (count: number) => void) {
  let count = 0
  return {
    get count() {
      return count
    },
    add(): () => void {
      count += 1
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        count -= 1
        onRelease(count)
      }
    },
  }
}
