/**
 * One implementation on its way into memory and then there: its files, its worker, and who uses it.
 * Ending the worker is the only way to get wasm memory back, so each has one of its own.
 */
import { bytesOf } from '../catalog/memory.ts'
import type { Entry, Implementation, Resource } from '../catalog/schema.ts'
import type { Files } from '../engine/engine.ts'
import type { GpuVerdict } from '../device/verdict.ts'
import { InoriginError } from '../error.ts'
import { call, type Link } from '../link/ask.ts'
import type { ModelCalls } from '../link/protocol.ts'
import { secondsFor } from '../store/rate.ts'
import type { LoadProgress, Tag } from '../types/index.ts'
import { createFeed, type Feed } from './feed.ts'
import { startModelThread } from './model-thread.ts'
import { verdictOf } from './trust.ts'

export interface Hosted {
  readonly entry: Entry
  readonly implementation: Implementation
  /** To its worker. */
  readonly link: Link
  /** Requests can be accepted: the small files are here. */
  readonly opened: Promise<void>
  readonly ready: boolean
  /** Ends when it is loaded. */
  readonly progress: Feed<LoadProgress>
  /** How many use it or wait for it, pages that were lent a way to it included. */
  readonly users: number
  /** Brings the weights, once; resolves when requests can be answered. */
  load(): Promise<void>
  /** Joins the users; what everyone has left before it was ready is given up. */
  join(): () => void
  /**
   * What a run failed with, in words that fit this catalog. A device that gave out stays so in its
   * thread, which then ends.
   */
  failed(error: unknown): Promise<unknown>
  /** A port straight to its worker, for ports of `predict`. */
  lend(): MessagePort
  /** Ends its worker; `replaced` where something else needs the room or is used in its place. */
  close(why?: 'unloaded' | 'replaced'): void
}

export interface HostedOptions {
  entry: Entry
  implementation: Implementation
  /** Folder URL with the workers and the runtime. */
  assets: string
  /** Files of those resources, downloaded if need be. */
  ensure(
    resources: readonly Resource[],
    options: { signal: AbortSignal; tag: Tag; onProgress: (progress: Transfer) => void },
  ): Promise<Files>
  /** What an earlier load found out about this GPU. */
  verdict: GpuVerdict | undefined
  /** Something was found out about it. */
  onVerdict(verdict: GpuVerdict): void
  /** An error of its worker with what the catalog knows to do about it. */
  explain(error: unknown, entry: Entry, implementation: Implementation): Promise<unknown>
  onProgress(progress: LoadProgress): void
  /** A page uses it, or is done with that, without having asked here. */
  onUse(): void
  /** It was closed or could not be loaded. */
  onClose(hosted: Hosted): void
}

export interface Transfer {
  loadedBytes: number
  totalBytes: number
  bytesPerSecond: number
}

/** Codes of errors after which a runtime stays useless in its thread. */
const DEVICE_FAULTS: ReadonlySet<string> = new Set([
  'device_lost',
  'gpu_error',
  'gpu_untrusted',
  'out_of_memory',
  'runtime_crashed',
])

/** Files that decide whether a request can be accepted, before any weights. */
const isText = ({ type }: Resource) => type === 'tokenizer' || type === 'config'

/** Begins with the small files; the weights wait to be asked for. */
export function createHosted(options: HostedOptions): Hosted {
  const { entry, implementation, assets, ensure, verdict, onVerdict, onProgress, onClose } = options
  const explain = (error: unknown) => options.explain(error, entry, implementation)
  const { resources } = implementation
  const totalBytes = bytesOf(implementation)
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

  /** What a transfer or a call ended with, or what ended them. */
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
      const files = await get(weights, bytesOf({ resources: texts }))
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
        const remainingSeconds = secondsFor(totalBytes - loadedBytes, bytesPerSecond)
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
