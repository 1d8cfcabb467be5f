/** Watches a GPUDevice for failures that WebGPU reports apart from the call that caused them. */
import type { InoriginError } from '../../error.ts'
import { withTimeout } from '../../values/promises.ts'
import { deviceLost, gpuFailure } from '../failure.ts'

/** Watches a device until `stop`. */
export class GpuWatch {
  readonly #gpu: GPUDevice
  readonly #stopping = new AbortController()
  #failure: InoriginError | null = null

  constructor(gpu: GPUDevice) {
    this.#gpu = gpu
    const { signal } = this.#stopping
    void gpu.lost.then((info) => {
      if (!signal.aborted) this.#failure = deviceLost(info.message)
    })
    const onError = (event: Event): void => {
      this.#failure ??= gpuFailure((event as GPUUncapturedErrorEvent).error)
    }
    gpu.addEventListener('uncapturederror', onError, { signal })
  }

  /** The failure after which results are invalid; `null` while there is none. */
  get failure(): InoriginError | null {
    return this.#failure
  }

  /** Runs a task in error scopes and waits for them; an error becomes the `failure`. */
  async scope<T>(task: () => Promise<T>): Promise<T> {
    const close = openScopes(this.#gpu)
    try {
      return await task()
    } finally {
      const first = await close()
      if (first) this.#failure ??= gpuFailure(first)
    }
  }

  /** Waits, for at most one second, until pending errors are reported. */
  async settle(): Promise<void> {
    const done = this.#gpu.queue.onSubmittedWorkDone().catch(() => undefined)
    await withTimeout(1_000, done, undefined)
    // Error events arrive in a later task than the promise above.
    await new Promise((resolve) => setTimeout(resolve))
  }

  /** Stops watching the device. */
  stop(): void {
    this.#stopping.abort()
  }
}

const KINDS = ['validation', 'internal', 'out-of-memory'] as const

/**
 * Opens error scopes on the device. The returned function closes them and resolves with the first
 * error, or `null`. Nested scopes must be closed in reverse order.
 */
export function openScopes(gpu: GPUDevice): () => Promise<GPUError | null> {
  for (const kind of KINDS) gpu.pushErrorScope(kind)
  return async () => {
    // A lost device reports no scope errors.
    const errors = await Promise.all(KINDS.map(() => gpu.popErrorScope().catch(() => null)))
    return errors.find((error) => error !== null) ?? null
  }
}
