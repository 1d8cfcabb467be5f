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
  /** Comparisons of predictors on the GPU with the CPU. */
  comparisons: GpuComparisonRecords
  /** Receives the verdict on the GPU that a load reached. */
  onVerdict(verdict: GpuVerdict): void
  onProgress(progress: LoadProgress): void
}

/** State that the steps of a load share. */
interface LoadContext extends LoadOptions {
  worker: Remote<ModelService>
  caller: Caller
  runtime: string
  totalBytes: number
  progress: LatestValue<LoadProgress>
}

/**
 * Starts a load, which ends when `closing` aborts. Aborts `closing` if the load fails, with the
 * result of `explain` as the reason.
 */
export function startLoad(
  options: LoadOptions,
  worker: Remote<ModelService>,
  closing: AbortController,
  explain: (error: unknown) => Promise<unknown>,
) {
  const { entry, implementation, onProgress, onVerdict } = options
  const { signal } = closing
  const totalBytes = sumResourceBytes(implementation)
  const progress = new LatestValue(initialProgress(entry.tag, totalBytes), onProgress)
  const runtime = new URL('ort/', options.assets).href
  const caller: Caller = { key: null, signal }
  const context: LoadContext = { ...options, worker, caller, runtime, totalBytes, progress }
  let ready = false
  let finished: Promise<void> | undefined

  /** Throws the reason of the abort if there was one, else the explained error. */
  async function throwExplained(error: unknown): Promise<never> {
    throw signal.aborted ? signal.reason : await explain(error)
  }

  /** Closes the implementation if the step fails. */
  function orClose(step: Promise<void>): Promise<void> {
    const explained = step.catch(throwExplained)
    explained.catch((error: unknown) => {
      const verdict = verdictFromError(error)
      if (verdict) onVerdict(verdict)
      closing.abort(error)
    })
    return explained
  }

  async function loadRest(): Promise<void> {
    if (entry.type === 'model') await loadWeights(context)
    ready = true
    progress.set({ ...progress.latest, phase: 'ready', bytesPerSecond: 0, remainingSeconds: 0 })
    progress.complete()
  }

  signal.addEventListener('abort', () => progress.fail(signal.reason))
  const opened = orClose(
    entry.type === 'model'
      ? openModel(context, entry, () => finished !== undefined)
      : openPredictor(context, entry),
  )
  return {
    /** Promise that resolves when the small files are present. */
    opened,
    /** `true` if the weights are loaded, too. */
    get ready() {
      return ready
    },
    /** Progress of the load. It is complete when the load is. */
    progress,
    /** Loads the weights once. Resolves when requests can be answered. */
    finish: () => (finished ??= orClose(opened.then(loadRest))),
  }
}

const initialProgress = (tag: Tag, totalBytes: number): LoadProgress => ({
  tag,
  phase: 'download',
  loadedBytes: 0,
  totalBytes,
  bytesPerSecond: 0,
  remainingSeconds: null,
})

/** Returns `true` for files that are needed to accept a request, before the weights are loaded. */
const isTextResource = ({ type }: Resource) => type === 'tokenizer' || type === 'config'
const isWeight = (resource: Resource) => !isTextResource(resource)

const toSizes = (resources: readonly Resource[]): FileSizes =>
  new Map(resources.map(({ name, bytes }) => [name, { size: bytes }]))

/** Opens the tokenizer. `expectsLoad` returns `true` if the weights will be loaded after it. */
async function openModel(
  context: LoadContext,
  entry: ModelEntry,
  expectsLoad: () => boolean,
): Promise<void> {
  const { implementation, worker, caller, runtime, verdict, comparisons } = context
  const { resources } = implementation
  const texts = await getFiles(context, resources.filter(isTextResource), 0)
  const setup: ModelSetup = {
    engine: implementation.engine,
    device: implementation.device,
    runtime,
    constraints: context.assets,
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
    verdict,
    ...(expectsLoad() && { expectedWeights: toSizes(resources.filter(isWeight)) }),
    threads: await findThreads(context),
  }
  await worker.openModel(setup, caller)
}

async function openPredictor(context: LoadContext, entry: PredictorEntry): Promise<void> {
  const { implementation, worker, caller, runtime, verdict, onVerdict, comparisons } = context
  const files = await getFiles(context, implementation.resources, 0)
  const comparison = await comparisons.find(entry, implementation)
  if (comparison?.agrees === false) throw gpuDiffers(comparison)
  reportCompiling(context)
  const threads = await findThreads(context)
  const setup: PredictorFiles = {
    entry,
    implementation,
    files,
    runtime,
    verdict,
    mustCompare: comparison === undefined && comparisons.mustCompare(entry, implementation),
    threads,
  }
  const newVerdict = await withRecord(context, () => worker.openPredictor(setup, caller))
  if (newVerdict) onVerdict(newVerdict)
}

async function loadWeights(context: LoadContext): Promise<void> {
  const { implementation, worker, caller, progress, onVerdict } = context
  const texts = implementation.resources.filter(isTextResource)
  const weights = implementation.resources.filter(isWeight)
  const files = await getFiles(context, weights, sumBytes(texts))
  reportCompiling(context)
  const onEvent = () => progress.set({ ...progress.latest, phase: 'warm' })
  const newVerdict = await withRecord(context, () =>
    worker.loadModel(files, { ...caller, onEvent }),
  )
  if (newVerdict) onVerdict(newVerdict)
}

/** Runs the part of a load in which memory may run out. The record outlives it only after a crash. */
async function withRecord<T>(
  { entry, implementation, crashes }: LoadContext,
  load: () => Promise<T>,
): Promise<T> {
  const record = await crashes.begin(entry, implementation)
  try {
    const result = await load()
    void record.completed()
    return result
  } catch (error) {
    await (InoriginError.from(error).code === 'worker_ended' ? record.crashed() : record.failed())
    throw error
  }
}

function getFiles(
  { entry, ensure, caller, totalBytes, progress }: LoadContext,
  wanted: readonly Resource[],
  bytesBefore: number,
): Promise<Files> {
  return ensure(wanted, {
    signal: caller.signal,
    tag: entry.tag,
    onProgress: ({ loadedBytes: addedBytes, bytesPerSecond }) => {
      const transfer = toTransferProgress(bytesBefore + addedBytes, totalBytes, bytesPerSecond)
      progress.set({ ...progress.latest, ...transfer })
    },
  })
}

/** Resolves with the measured number of threads; `undefined` if there is none, or no use for it. */
const findThreads = async ({ implementation, threads }: LoadContext): Promise<number | undefined> =>
  implementation.device === 'wasm' ? threads() : undefined

function reportCompiling({ progress, totalBytes }: LoadContext): void {
  const transferred = { loadedBytes: totalBytes, bytesPerSecond: 0, remainingSeconds: 0 }
  progress.set({ ...progress.latest, phase: 'compile', ...transferred })
}
