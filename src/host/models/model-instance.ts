/**
 * One loaded or loading implementation: its files, its worker and its reference count. Terminating
 * a worker is the only way to free WASM memory, so each implementation has its own worker.
 */
import { sumBytes, sumResourceBytes } from '../../catalog/memory-bytes.ts'
import type { Entry, Implementation, Resource } from '../../catalog/schema.ts'
import type { Files } from '../../engine/engine.ts'
import { verdictFromError, type GpuVerdict } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'
import { remote } from '../../link/remote.ts'
import { toTransferProgress, type TransferProgress } from '../../store/transfer-rate.ts'
import type { Caller, LoadProgress, Remote, Tag } from '../../types/index.ts'
import { createLatestValue, type LatestValue } from './latest-value.ts'
import {
  MODEL_METHODS,
  type ModelService,
  type ModelSetup,
  type PredictorFiles,
} from './model-service.ts'
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
   * Resolves with the error to report for a failed run; its message refers to this catalog. A lost
   * device cannot recover within its thread, so a device error also terminates the worker.
   */
  explainFailure(error: unknown): Promise<unknown>
  /** Opens a port that leads directly to the worker. It accepts the ports of `predict` calls. */
  openDirectPort(): MessagePort
  /**
   * Terminates the worker. `replaced` means that another implementation needs the memory or is used
   * instead. The default is `unloaded`.
   */
  close(why?: 'unloaded' | 'replaced'): void
}

export interface ModelInstanceOptions {
  entry: Entry
  implementation: Implementation
  /** URL of the folder with the workers and the runtime. */
  assets: string
  /** Resolves with the files of the resources. Missing ones are downloaded first. */
  ensure(
    resources: readonly Resource[],
    options: { signal: AbortSignal; tag: Tag; onProgress: (progress: TransferProgress) => void },
  ): Promise<Files>
  /** Verdict on this GPU from an earlier load; `undefined` if there is none. */
  verdict: GpuVerdict | undefined
  /** Receives the verdict on the GPU that a load reached. */
  onVerdict(verdict: GpuVerdict): void
  /** Resolves with the error of the worker, extended with the remedy that the catalog offers. */
  explain(error: unknown, entry: Entry, implementation: Implementation): Promise<unknown>
  onProgress(progress: LoadProgress): void
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

/** Returns `true` for files that are needed to accept a request, before the weights are loaded. */
const isTextResource = ({ type }: Resource) => type === 'tokenizer' || type === 'config'

/** Starts the worker and loads the small files. The weights are loaded by `load`. */
export function createModelInstance(options: ModelInstanceOptions): ModelInstance {
  const { entry, implementation, assets, ensure, verdict, onVerdict, onProgress, onClose } = options
  const explain = (error: unknown) => options.explain(error, entry, implementation)
  const { resources } = implementation
  const totalBytes = sumResourceBytes(implementation)
  const closing = new AbortController()
  const thread = startModelThread(entry, assets, closing, options.onDirectUse)
  const worker = remote<ModelService>(thread.link, MODEL_METHODS)
  const caller: Caller = { key: null, signal: closing.signal }
  const initialProgress: LoadProgress = {
    tag: entry.tag,
    phase: 'download',
    loadedBytes: 0,
    totalBytes,
    bytesPerSecond: 0,
    remainingSeconds: null,
  }
  const progress = createLatestValue(initialProgress, onProgress)
  let references = 0
  let ready = false
  let loading: Promise<void> | undefined

  const opened = (entry.type === 'model' ? openModel() : openPredictor()).catch(throwExplained)
  opened.catch(closeWith)

  /** Throws the reason of the abort if there was one, else the explained error. */
  async function throwExplained(error: unknown): Promise<never> {
    throw closing.signal.aborted ? closing.signal.reason : await explain(error)
  }

  function closeWith(error: unknown): void {
    const newVerdict = verdictFromError(error)
    if (newVerdict) onVerdict(newVerdict)
    closing.abort(error)
  }

  async function openModel(): Promise<void> {
    const texts = await getFiles(resources.filter(isTextResource), 0)
    if (entry.type !== 'model') return
    const setup: ModelSetup = {
      engine: implementation.engine,
      device: implementation.device,
      runtime: new URL('ort/', assets).href,
      texts,
      maxInputTokens: entry.maxInputTokens,
      maxOutputTokens: entry.maxOutputTokens,
      toolFormat: entry.toolFormat,
      reasons: entry.capabilities && entry.capabilities.thinking === true,
      reasoningBudget: entry.reasoningBudget ?? 0,
      features: implementation.requires?.features,
      overrides: implementation.overrides,
      verdict,
    }
    await worker.openModel(setup, caller)
  }

  async function openPredictor(): Promise<void> {
    const files = await getFiles(resources, 0)
    if (entry.type !== 'predictor') return
    reportCompiling()
    const runtime = new URL('ort/', assets).href
    const setup: PredictorFiles = { entry, implementation, files, runtime, verdict }
    const newVerdict = await worker.openPredictor(setup, caller)
    if (newVerdict) onVerdict(newVerdict)
  }

  async function loadWeights(): Promise<void> {
    if (entry.type === 'model') {
      const texts = resources.filter(isTextResource)
      const weights = resources.filter((resource) => !isTextResource(resource))
      const files = await getFiles(weights, sumBytes(texts))
      reportCompiling()
      const onEvent = () => progress.set({ ...progress.latest, phase: 'warm' })
      const newVerdict = await worker.loadModel(files, { ...caller, onEvent })
      if (newVerdict) onVerdict(newVerdict)
    }
    ready = true
    progress.set({ ...progress.latest, phase: 'ready', bytesPerSecond: 0, remainingSeconds: 0 })
    progress.complete()
  }

  function getFiles(wanted: readonly Resource[], bytesBefore: number): Promise<Files> {
    return ensure(wanted, {
      signal: closing.signal,
      tag: entry.tag,
      onProgress: ({ loadedBytes: addedBytes, bytesPerSecond }) => {
        const transfer = toTransferProgress(bytesBefore + addedBytes, totalBytes, bytesPerSecond)
        progress.set({ ...progress.latest, ...transfer })
      },
    })
  }

  function reportCompiling(): void {
    const transferred = { loadedBytes: totalBytes, bytesPerSecond: 0, remainingSeconds: 0 }
    progress.set({ ...progress.latest, phase: 'compile', ...transferred })
  }

  const instance: ModelInstance = {
    entry,
    implementation,
    worker,
    ended: closing.signal,
    opened,
    progress,
    get ready() {
      return ready
    },
    get referenceCount() {
      return references + thread.directRequests
    },
    get directRequests() {
      return thread.directRequests
    },
    load() {
      if (!loading) {
        loading = opened.then(loadWeights).catch(throwExplained)
        loading.catch(closeWith)
      }
      return loading
    },
    retain() {
      references += 1
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        references -= 1
        if (instance.referenceCount === 0 && !ready) instance.close()
      }
    },
    async explainFailure(error) {
      const explained = await explain(error)
      if (error instanceof InoriginError && FATAL_DEVICE_CODES.has(error.code ?? '')) {
        closing.abort(explained)
      }
      return explained
    },
    openDirectPort: thread.openDirectPort,
    close(why = 'unloaded') {
      const what = `${entry.tag} was ${why} while it was in use. Try again.`
      closing.abort(new InoriginError('unavailable', what, { code: why, retryAfter: 1 }))
    },
  }
  closing.signal.addEventListener('abort', () => {
    progress.fail(closing.signal.reason)
    onClose(instance)
  })
  return instance
}
