/** A GPU that computes right, with as many of its features as that allows. */
import { findAdapter } from '../../../device/adapter.ts'
import { requestGpu } from '../../../device/gpu.ts'
import { within } from '../../../store/patience.ts'
import { type GpuVerdict, rungs } from '../../../device/verdict.ts'
import { InoriginError } from '../../../error.ts'
import { loadingCancelled } from '../../failure.ts'
import { loadRuntime, type Runtime } from '../runtime.ts'
import { isRight } from './selftest.ts'

export interface TrustOptions {
  /** As for a runtime. */
  folder: string
  /** Features that the weights need, such as `shader-f16`. Default: none. */
  features?: readonly string[]
  /** What is known of this GPU; absent: it is tried, which takes seconds. */
  verdict?: GpuVerdict
}

export interface TrustedGpu {
  gpu: GPUDevice
  runtime: Runtime
  verdict: GpuVerdict
}

const HALF = 'shader-f16'

/** Milliseconds for a trial in one precision; most of it is the compilation of shaders. */
const PATIENCE = 100_000

/**
 * A device of our own and a runtime on it; the caller releases and destroys. Rejects with
 * `unavailable`: code `gpu_untrusted`, with the verdict in its details, when the GPU computes wrong
 * numbers, or none in time, or right ones only without a feature that the weights need.
 */
export async function openTrusted(
  { folder, features = [], verdict: known }: TrustOptions,
  signal: AbortSignal,
): Promise<TrustedGpu> {
  if (known?.features === null) throw untrusted(known, features)
  const available = new Set<string>((await findAdapter())?.features)
  const sets = known ? [known.features.filter((name) => available.has(name))] : rungs(available)
  // Half precision is weighed with each set below; one that is not there at all is refused here.
  const must = features.filter((name) => name !== HALF || !available.has(name))
  let late = false
  for (const [tried, optional] of sets.entries()) {
    if (signal.aborted) throw loadingCancelled()
    const opened = await requestGpu({ features: must, optional }).catch((thrown: unknown) => {
      // After a trial that hung, a GPU may give nothing more.
      if (tried > 0) throw untrusted({ features: null, late: true }, features)
      throw thrown
    })
    const { device: gpu } = opened
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    const drop = (): void => {
      runtime.release()
      gpu.destroy()
    }
    try {
      const sound = known ? true : await isSound(runtime, gpu, optional)
      late ||= sound === null
      if (sound) {
        const verdict = known ?? verdictOf(optional, late)
        if (needsMore(features, optional)) throw untrusted(verdict, features)
        return { gpu, runtime, verdict }
      }
    } catch (thrown) {
      drop()
      throw thrown
    }
    drop()
  }
  throw untrusted(verdictOf(null, late), features)
}

const verdictOf = (features: readonly string[] | null, late: boolean): GpuVerdict => ({
  features,
  ...(late && { late }),
})

const needsMore = (features: readonly string[], optional: readonly string[]): boolean =>
  features.includes(HALF) && !optional.includes(HALF)

/** `null` where it does not come to an end in time. */
async function isSound(
  runtime: Runtime,
  gpu: GPUDevice,
  features: readonly string[],
): Promise<boolean | null> {
  for (const precision of ['float32', 'float16'] as const) {
    if (precision === 'float16' && !features.includes(HALF)) continue
    const right = await within(PATIENCE, isRight(runtime, gpu, precision), null)
    if (!right) return right
  }
  return true
}

function untrusted(verdict: GpuVerdict, features: readonly string[]): InoriginError {
  const names = features.join(', ')
  const only =
    verdict.features === null ? '' : verdict.late ? ` with ${names}` : ` without ${names}`
  const what = verdict.late
    ? `The GPU here did not come to the end of a trial${only}`
    : `The GPU here computes ${only ? `right numbers only${only}` : 'wrong numbers'}`
  return new InoriginError(
    'unavailable',
    `${what}, so this model is not run on it. Use device: "wasm", or another browser.`,
    { code: 'gpu_untrusted', details: { verdict } },
  )
}
