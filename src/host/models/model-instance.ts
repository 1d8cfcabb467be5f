/**
 * One loaded or loading implementation: its files, its worker and its reference count. Terminating
 * a worker is the only way to free WASM memory, so each implementation has its own worker.
 */
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { comparisonFromError, gpuDiffers, type GpuComparison } from '../../device/gpu-verdict.ts'
import { unsupportedFromError } from '../../engine/failure.ts'
import { InoriginError } from '../../error.ts'
import { remote } from '../../link/ask.ts'
import type { LoadProgress, Remote } from '../../types/index.ts'
import { ImplementationLoad, type LoadOptions } from './implementation-load.ts'
import { type LatestValue, loadPaused } from './event-hub.ts'
import { MODEL_METHODS, type ModelService } from './model-service.ts'
import { ModelThread } from './model-thread.ts'

export interface ModelInstanceOptions extends LoadOptions {
  /** Resolves with the error of the worker, extended with the remedy that the catalog offers. */
  explain(error: unknown, entry: Entry, implementation: Implementation): Promise<unknown>
  /** Called when a page starts or finishes a request over a direct port. */
  onDirectUse(): void
  /** Called when the implementation was closed or failed to load. */
  onClose(instance: ModelInstance): void
}

/** Codes of errors after which a runtime cannot be used again in its thread. */
const FATAL_DEVICE_CODES: ReadonlySet<string | undefined> = new Set([
  'device_lost',
  'gpu_error',
  'gpu_untrusted',
  'operator_unsupported',
  'out_of_memory',
  'runtime_crashed',
])

const codeOf = (error: unknown) => (error instanceof InoriginError ? error.code : undefined)

export class ModelInstance {
  readonly entry: Entry
  readonly implementation: Implementation
  /** The worker. It can be called from the start, but only answers some calls before it is open. */
  readonly worker: Remote<ModelService>
  #options: ModelInstanceOptions
  #closing = new AbortController()
  #thread: ModelThread
  #loading: ImplementationLoad
  #references = 0

  /** Starts the worker and loads the small files. The weights are loaded by `load`. */
  constructor(options: ModelInstanceOptions) {
    const { entry, implementation, assets, onDirectUse, onClose } = options
    this.entry = entry
    this.implementation = implementation
    this.#options = options
    const closing = this.#closing
    const record = (comparison: GpuComparison) => this.#record(comparison)
    this.#thread = new ModelThread(entry, assets, closing, onDirectUse, record)
    this.worker = remote<ModelService>(this.#thread.link, MODEL_METHODS)
    const explain = (error: unknown) => this.#explain(error)
    this.#loading = new ImplementationLoad(options, this.worker, closing, explain)
    this.ended.addEventListener('abort', () => onClose(this))
  }

  /** Signal that aborts when the worker ends, with an `InoriginError` as its reason. */
  get ended(): AbortSignal {
    return this.#closing.signal
  }

  /** Promise that resolves when the small files are present, so that requests can be accepted. */
  get opened(): Promise<void> {
    return this.#loading.opened
  }

  get ready(): boolean {
    return this.#loading.ready
  }

  /** Progress of the load. It is complete when the load is. */
  get progress(): LatestValue<LoadProgress> {
    return this.#loading.progress
  }

  /** Number of current and waiting users, including requests that pages sent over direct ports. */
  get referenceCount(): number {
    return this.#references + this.directRequests
  }

  /** Number of open requests that pages sent over direct ports. */
  get directRequests(): number {
    return this.#thread.directRequests
  }

  /** Loads the weights once. Resolves when requests can be answered. */
  load(): Promise<void> {
    return this.#loading.finish()
  }

  /**
   * Adds a reference and returns the function that releases it. A load is canceled when its last
   * reference is released before it is ready.
   */
  retain(): () => void {
    this.#references += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#references -= 1
      if (this.referenceCount === 0 && !this.ready) this.close()
    }
  }

  /**
   * Resolves with the error to report for a failed run; its message refers to this catalog. Also
   * terminates the worker if its thread cannot recover: after a device error, and if the weights in
   * its memory came from damaged files.
   */
  async explainFailure(error: unknown): Promise<unknown> {
    const comparison = comparisonFromError(error)
    if (comparison) this.#record(comparison)
    const explained = await this.#explain(error)
    const isFatal = FATAL_DEVICE_CODES.has(codeOf(error))
    if (isFatal || codeOf(explained) === 'storage_damaged') this.#closing.abort(explained)
    return explained
  }

  /** Opens a port that leads directly to the worker. It accepts the ports of `predict` calls. */
  openDirectPort(): MessagePort {
    return this.#thread.openDirectPort()
  }

  /**
   * Terminates the worker. `replaced` means that another implementation needs the memory or is used
   * instead, `paused` that the user ended the load.
   */
  close(why: 'unloaded' | 'replaced' | 'paused' = 'unloaded'): void {
    const { tag } = this.entry
    if (why === 'paused') return this.#closing.abort(loadPaused(tag))
    const what = `${tag} was ${why} while it was in use. Try again.`
    this.#closing.abort(new InoriginError('unavailable', what, { code: why, retryAfter: 1 }))
  }

  #explain(error: unknown): Promise<unknown> {
    const { explain, unsupported } = this.#options
    const why = unsupportedFromError(error)
    if (why !== null) unsupported.record(this.entry, this.implementation, why)
    return explain(error, this.entry, this.implementation)
  }

  /**
   * Records the comparison. The worker of a predictor ends if the GPU is wrong, because it computes
   * nothing more. A language model goes on with its image encoder on the CPU.
   */
  #record(comparison: GpuComparison): void {
    const { comparisons, onProgress } = this.#options
    comparisons.record(this.entry, this.implementation, comparison)
    if (comparison.agrees || this.entry.type === 'model' || this.ended.aborted) return
    onProgress({ ...this.progress.latest, gpuDifference: comparison.why })
    this.#closing.abort(gpuDiffers(comparison))
  }
}
