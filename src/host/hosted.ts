/**
 * One loaded or loading implementation: its files, its worker and its reference count. Terminating
 * a worker is the only way to free WASM memory, so each implementation has its own worker.
 */
import { sumResourceBytes } from '../catalog/memory-bytes.ts'
import type { Entry, Implementation, Resource } from '../catalog/schema.ts'
import type { Files } from '../engine/engine.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import { InoriginError } from '../error.ts'
import { call, type Link } from '../link/ask.ts'
import type { ModelCalls } from '../link/protocol.ts'
import { estimateSeconds } from '../store/transfer-rate.ts'
import type { LoadProgress, Tag } from '../types/index.ts'
import { createFeed, type Feed } from './feed.ts'
import { startModelThread } from './model-thread.ts'
import { verdictOf } from './trust.ts'

export interface Hosted {
  readonly entry: Entry
  readonly implementation: Implementation
  /** Link to the worker. */
  readonly link: Link
  /** Promise that resolves when the small files are present, so that requests can be accepted. */
  readonly opened: Promise<void>
  readonly ready: boolean
  /** Progress of the load. The feed ends when the load completes. */
  readonly progress: Feed<LoadProgress>
  /** Number of current and waiting users. It includes requests that pages sent over lent ports. */
  readonly users: number
  /** Loads the weights once. Resolves when requests can be answered. */
  load(): Promise<void>
  /**
   * Adds a user and returns the function that removes it. A load is canceled when its last user
   * leaves before it is ready.
   */
  join(): () => void
  /**
   * Resolves with the error to report for a failed run; its message refers to this catalog. A lost
   * device cannot recover within its thread, so a device error also terminates the worker.
   */
  failed(error: unknown): Promise<unknown>
  /** Returns a port straight to the worker. It accepts the ports of `predict` calls. */
  lend(): MessagePort
  /**
   * Terminates the worker. `replaced` means that another implementation needs the memory or is used
   * instead. The default is `unloaded`.
   */
  close(why?: 'unloaded' | 'replaced'): void
}

export interface HostedOptions {
  entry: Entry
  implementation: Implementation
  /** URL of the folder with the workers and the runtime. */
  assets: string
  /** Resolves with the files of the resources. Missing ones are downloaded first. */
  ensure(
    resources: readonly Resource[],
    options: { signal: AbortSignal; tag: Tag; onProgress: (progress: Transfer) => void },
  ): Promise<Files>
  /** Verdict on this GPU from an earlier load; `undefined` if there is none. */
  verdict: GpuVerdict | undefined
  /** Receives the verdict on the GPU that a load reached. */
  onVerdict(verdict: GpuVerdict): void
  /** Resolves with the error of the worker, extended with the remedy that the catalog offers. */
  explain(error: unknown, entry: Entry, implementation: Implementation): Promise<unknown>
  onProgress(progress: LoadProgress): void
  /** Called when a page starts or finishes a request over a lent port. */
  onUse(): void
  /** Called when the implementation was closed or failed to load. */
  onClose(hosted: Hosted): void
}

export interface Transfer {
  loadedBytes: number
  totalBytes: number
  bytesPerSecond: number
}

/** Codes of errors after which a runtime cannot be used again in its thread. */
const DEVICE_FAULTS: ReadonlySet<string> = new Set([
  'device_lost',
  'gpu_error',
  'gpu_untrusted',
  'out_of_memory',
  'runtime_crashed',
])

/** Returns `true` for files that are needed to accept a request, before the weights are loaded. */
const isText = ({ type }: Resource) => type === 'tokenizer' || type === 'config'

/** Starts the worker and loads the small files. The weights are loaded by `load`. */
export function createHosted(options: HostedOptions): Hosted {
  const { entry, implementation, assets, ensure, verdict, onVerdict, onProgress, onClose } = options
  const explain = (error: unknown) => options.explain(error, entry, implementation)
  const { resources } = implementation
  const totalBytes = sumResourceBytes(implementation)
  const closing = new AbortController()
  const thread = startModelThread(entry, assets, closing, options.onUse)
  const { link } = thread
  const start: LoadProgress = {
    tag: entry.tag,
    phase: 'download',
    loadedBytes: 0,
    totalBytes,
    bytesPerSecond: 0,
    remainingSeconds: null,
  }
  const progress = createFeed(start, onProgress)
  let users = 0
  let ready = false
  let loading: Promise<void> | undefined

  const opened = (entry.type === 'model' ? openModel() : openPredictor()).catch(blame)
  opened.catch(giveUp)

  /** Throws the reason of the abort if there was one, else the explained error. */
  async function blame(error: unknown): Promise<never> {
    throw closing.signal.aborted ? closing.signal.reason : await explain(error)
  }

  function giveUp(error: unknown): void {
    const found = verdictOf(error)
    if (found) onVerdict(found)
    closing.abort(error)
  }

  async function openModel(): Promise<void> {
    const texts = await get(resources.filter(isText), 0)
    if (entry.type !== 'model') return
    await ask('openModel', {
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
    })
  }

  async function openPredictor(): Promise<void> {
    const files = await get(resources, 0)
    if (entry.type !== 'predictor') return
    compiling()
    const runtime = new URL('ort/', assets).href
    const found = await ask('openPredictor', { entry, implementation, files, runtime, verdict })
    if (found) onVerdict(found)
  }

  async function finish(): Promise<void> {
    if (entry.type === 'model') {
      const texts = resources.filter(isText)
      const weights = resources.filter((resource) => !isText(resource))
      const files = await get(weights, sumResourceBytes({ resources: texts }))
      compiling()
      const found = await ask('loadModel', files, () =>
        progress.push({ ...progress.latest, phase: 'warm' }),
      )
      if (found) onVerdict(found)
    }
    ready = true
    progress.push({ ...progress.latest, phase: 'ready', bytesPerSecond: 0, remainingSeconds: 0 })
    progress.end()
  }

  function get(wanted: readonly Resource[], before: number): Promise<Files> {
    return ensure(wanted, {
      signal: closing.signal,
      tag: entry.tag,
      onProgress: ({ loadedBytes: here, bytesPerSecond }) => {
        const loadedBytes = before + here
        const remainingSeconds = estimateSeconds(totalBytes - loadedBytes, bytesPerSecond)
        progress.push({ ...progress.latest, loadedBytes, bytesPerSecond, remainingSeconds })
      },
    })
  }

  function ask<Name extends keyof ModelCalls>(
    name: Name,
    argument: ModelCalls[Name]['args'][0],
    onEvent?: () => void,
  ): Promise<ModelCalls[Name]['result']> {
    return call<ModelCalls, Name>(link, name, [argument] as never, {
      signal: closing.signal,
      onEvent,
    })
  }

  function compiling(): void {
    const here = { loadedBytes: totalBytes, bytesPerSecond: 0, remainingSeconds: 0 }
    progress.push({ ...progress.latest, phase: 'compile', ...here })
  }

  const hosted: Hosted = {
    entry,
    implementation,
    link,
    opened,
    progress,
    get ready() {
      return ready
    },
    get users() {
      return users + thread.direct
    },
    load() {
      if (!loading) {
        loading = opened.then(finish).catch(blame)
        loading.catch(giveUp)
      }
      return loading
    },
    join() {
      users += 1
      let joined = true
      return () => {
        if (!joined) return
        joined = false
        users -= 1
        if (hosted.users === 0 && !ready) hosted.close()
      }
    },
    async failed(error) {
      const explained = await explain(error)
      if (error instanceof InoriginError && DEVICE_FAULTS.has(error.code ?? '')) {
        closing.abort(explained)
      }
      return explained
    },
    lend: thread.lend,
    close(why = 'unloaded') {
      const what = `${entry.tag} was ${why} while it was in use. Try again.`
      closing.abort(new InoriginError('unavailable', what, { code: why, retryAfter: 1 }))
    },
  }
  closing.signal.addEventListener('abort', () => {
    progress.fail(closing.signal.reason)
    onClose(hosted)
  })
  return hosted
}
