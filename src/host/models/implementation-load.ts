/**
 * Loads one implementation into its worker, in two steps: the small files, so that requests can be
 * accepted, and the weights. A predictor is loaded by the first step.
 */
import { sumBytes, sumResourceBytes } from '../../catalog/memory-bytes.ts'
import type {
  Entry,
  Implementation,
  ModelEntry,
  PredictorEntry,
  Resource,
} from '../../catalog/schema.ts'
import {
  gpuDiffers,
  verdictFromError,
  type GpuComparison,
  type GpuVerdict,
} from '../../device/gpu-verdict.ts'
import type { Files, FileSizes } from '../../engine/engine.ts'
import { toTransferProgress, type TransferProgress } from '../../store/transfer-rate.ts'
import type { Caller, LoadProgress, Remote, Tag } from '../../types/index.ts'
import { InoriginError } from '../../error.ts'
import { LatestValue } from './event-hub.ts'
import type { ModelService, ModelSetup, PredictorFiles } from './model-service.ts'

/** Record of a load in progress, which tells the next host about a crash. */
export interface LoadRecord {
  /** Removes the record, and the crashes before it: the load has succeeded. */
  completed(): Promise<void>
  /** Removes the record: the load has failed, and its thread lives. */
  failed(): Promise<void>
  /** Counts the load as a crash: its worker ended by itself. */
  crashed(): Promise<void>
}

/** Knows for which predictors the GPU computes the same as the CPU. */
export interface GpuComparisonRecords {
  /** Resolves with the comparison of the implementation on this GPU; `undefined` if there is none. */
  find(entry: Entry, implementation: Implementation): Promise<GpuComparison | undefined>
  /** Resolves with the comparison of the image encoder; `undefined` if there is none. */
  findEncoder(entry: Entry, implementation: Implementation): Promise<GpuComparison | undefined>
  /** Returns `true` if the implementation must be compared before its outputs are trusted. */
  mustCompare(entry: Entry, implementation: Implementation): boolean
  /** Applies the comparison at once, and stores it. */
  record(entry: Entry, implementation: Implementation, comparison: GpuComparison): void
}

export interface LoadOptions {
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
  /** Resolves with the fastest number of WASM threads; `undefined` if it was not measured. */
  threads(): Promise<number | undefined>
  /** Records the loads that may end the page. */
  crashes: {
    /** Writes the record of a load. Rejects with `load_crashed` if it must not be loaded. */
    begin(entry: Entry, implementation: Implementation): Promise<LoadRecord>
  }
  /** Remembers implementations with a part that the runtime cannot compute on their device. */
  unsupported: { record(entry: Entry, implementation: Implementation, why: string): void }
  /** Comparisons of predictors on the GPU with the CPU. */
  comparisons: GpuComparisonRecords
  /** Receives the verdict on the GPU that a load reached. */
  onVerdict(verdict: GpuVerdict): void
  onProgress(progress: LoadProgress): void
}

/** The load of one implementation, which ends when `closing` aborts. */
export class ImplementationLoad {
  /** Promise that resolves when the small files are present. */
  readonly opened: Promise<void>
  /** Progress of the load. It is complete when the load is. */
  readonly progress: LatestValue<LoadProgress>
  /** `true` if the weights are loaded, too. */
  ready = false
  #options: LoadOptions
  #worker: Remote<ModelService>
  #closing: AbortController
  #explain: (error: unknown) => Promise<unknown>
  #caller: Caller
  #runtime: string
  #totalBytes: number
  #finished: Promise<void> | undefined

  /** Loads the small files. If it fails, it aborts `closing` with the result of `explain`. */
  constructor(
    options: LoadOptions,
    worker: Remote<ModelService>,
    closing: AbortController,
    explain: (error: unknown) => Promise<unknown>,
  ) {
    const { entry, implementation, assets, onProgress } = options
    const { signal } = closing
    this.#options = options
    this.#worker = worker
    this.#closing = closing
    this.#explain = explain
    this.#caller = { key: null, signal }
    this.#runtime = new URL('ort/', assets).href
    const totalBytes = sumResourceBytes(implementation)
    this.#totalBytes = totalBytes
    const start = { loadedBytes: 0, totalBytes, bytesPerSecond: 0, remainingSeconds: null }
    this.progress = new LatestValue<LoadProgress>(
      { tag: entry.tag, phase: 'download', ...start },
      onProgress,
    )
    signal.addEventListener('abort', () => this.progress.fail(signal.reason))
    this.opened = this.#orClose(
      entry.type === 'model' ? this.#openModel(entry) : this.#openPredictor(entry),
    )
  }

  /** Loads the weights once. Resolves when requests can be answered. */
  finish(): Promise<void> {
    return (this.#finished ??= this.#orClose(this.opened.then(() => this.#loadRest())))
  }

  /** Closes the implementation if the step fails. */
  #orClose(step: Promise<void>): Promise<void> {
    const { signal } = this.#closing
    const explained = step.catch(async (error: unknown) => {
      throw signal.aborted ? signal.reason : await this.#explain(error)
    })
    explained.catch((error: unknown) => {
      const verdict = verdictFromError(error)
      if (verdict) this.#options.onVerdict(verdict)
      this.#closing.abort(error)
    })
    return explained
  }

  /** Opens the tokenizer of a language model. */
  async #openModel(entry: ModelEntry): Promise<void> {
    const { implementation, assets, verdict, comparisons } = this.#options
    const { resources } = implementation
    const texts = await this.#getFiles(textResourcesOf(resources), 0)
    const setup: ModelSetup = {
      engine: implementation.engine,
      device: implementation.device,
      runtime: this.#runtime,
      constraints: assets,
      texts,
      maxInputTokens: entry.maxInputTokens,
      maxOutputTokens: entry.maxOutputTokens,
      toolFormat: entry.toolFormat,
      reasons: entry.capabilities && entry.capabilities.thinking === true,
      reasoningBudget: entry.reasoningBudget ?? 0,
      imageDetail: entry.imageDetail,
      takesImages: entry.capabilities?.imageInput === true,
      encoderComparison: await comparisons.findEncoder(entry, implementation),
      features: implementation.requires?.features,
      overrides: implementation.overrides,
      precision: implementation.precision ?? 'fast',
      verdict,
      // `finish` may have been called meanwhile.
      ...(this.#finished && { expectedWeights: toSizes(resources.filter(isWeight)) }),
      threads: await this.#findThreads(),
    }
    await this.#worker.openModel(setup, this.#caller)
  }

  async #openPredictor(entry: PredictorEntry): Promise<void> {
    const { implementation, verdict, comparisons } = this.#options
    const files = await this.#getFiles(implementation.resources, 0)
    const comparison = await comparisons.find(entry, implementation)
    if (comparison?.agrees === false) throw gpuDiffers(comparison)
    this.#reportCompiling()
    const setup: PredictorFiles = {
      entry,
      implementation,
      files,
      runtime: this.#runtime,
      verdict,
      mustCompare: comparison === undefined && comparisons.mustCompare(entry, implementation),
      threads: await this.#findThreads(),
    }
    await this.#runRecorded(() => this.#worker.openPredictor(setup, this.#caller))
  }

  async #loadRest(): Promise<void> {
    const { entry, implementation } = this.#options
    if (entry.type === 'model') {
      const texts = implementation.resources.filter(isTextResource)
      const weights = implementation.resources.filter(isWeight)
      const files = await this.#getFiles(weights, sumBytes(texts))
      this.#reportCompiling()
      const caller = { ...this.#caller, onEvent: () => this.#report({ phase: 'warm' }) }
      await this.#runRecorded(() => this.#worker.loadModel(files, caller))
    }
    this.ready = true
    this.#report({ phase: 'ready', bytesPerSecond: 0, remainingSeconds: 0 })
    this.progress.complete()
  }

  /** Runs the part of a load in which memory may run out. Its record outlives it only after a crash. */
  async #runRecorded(load: () => Promise<GpuVerdict | null>): Promise<void> {
    const { entry, implementation, crashes, onVerdict } = this.#options
    const record = await crashes.begin(entry, implementation)
    try {
      const verdict = await load()
      void record.completed()
      if (verdict) onVerdict(verdict)
    } catch (error) {
      await (InoriginError.from(error).code === 'worker_ended' ? record.crashed() : record.failed())
      throw error
    }
  }

  #getFiles(wanted: readonly Resource[], bytesBefore: number): Promise<Files> {
    const { entry, ensure } = this.#options
    return ensure(wanted, {
      signal: this.#closing.signal,
      tag: entry.tag,
      onProgress: ({ loadedBytes, bytesPerSecond }) =>
        this.#report(
          toTransferProgress(bytesBefore + loadedBytes, this.#totalBytes, bytesPerSecond),
        ),
    })
  }

  /** Resolves with the measured number of threads; `undefined` if there is none, or no use for it. */
  async #findThreads(): Promise<number | undefined> {
    const { implementation, threads } = this.#options
    return implementation.device === 'wasm' ? threads() : undefined
  }

  #reportCompiling(): void {
    const transferred = { loadedBytes: this.#totalBytes, bytesPerSecond: 0, remainingSeconds: 0 }
    this.#report({ phase: 'compile', ...transferred })
  }

  #report(step: Partial<LoadProgress>): void {
    this.progress.set({ ...this.progress.latest, ...step })
  }
}

/** Returns `true` for files that are needed to accept a request, before the weights are loaded. */
const isTextResource = ({ type }: Resource) => type === 'tokenizer' || type === 'config'
const isWeight = (resource: Resource) => !isTextResource(resource)

/** Returns the files that the tokenizer is opened from. A GGUF file may have all that they say. */
function textResourcesOf(resources: readonly Resource[]): readonly Resource[] {
  const texts = resources.filter(isTextResource)
  return texts.length > 0 ? texts : resources.filter(({ type }) => type === 'gguf')
}

const toSizes = (resources: readonly Resource[]): FileSizes =>
  new Map(resources.map(({ name, bytes }) => [name, { size: bytes }]))
