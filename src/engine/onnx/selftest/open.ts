/** Opens a GPU with as many optional features as possible with which it passes the self-test. */
import { describeAdapter, findAdapter } from '../../../device/adapter.ts'
import { requestGpu } from '../../../device/gpu.ts'
import { withTimeout } from '../../../values/promises.ts'
import { type GpuVerdict, listFeatureSets } from '../../../device/gpu-verdict.ts'
import { InoriginError } from '../../../error.ts'
import { loadingCancelled } from '../../failure.ts'
import { loadRuntime, type Runtime } from '../runtime.ts'
import { computesCorrectly } from './selftest.ts'

const HALF_FEATURE = 'shader-f16'

/** Timeout in milliseconds of the self-test in one precision; compiling shaders takes longest. */
const PRECISION_TIMEOUT_MS = 100_000

/**
 * Resolves with a device that passed the self-test, and a runtime on it; the caller releases and
 * destroys them. `folder` is the URL of the WebAssembly files, with a trailing slash. `features` are
 * those that the weights need. Without an earlier verdict, the self-test runs for seconds. Rejects with
 * `unavailable` if there is no device. The code is `gpu_untrusted`, with the verdict in `details`,
 * if the self-test failed, timed out, or passed only without a feature that the weights need.
 */
export async function openTrusted(
  {
    folder,
    features = [],
    verdict: earlierVerdict,
  }: { folder: string; features?: readonly string[]; verdict?: GpuVerdict },
  signal: AbortSignal,
): Promise<{ gpu: GPUDevice; runtime: Runtime; verdict: GpuVerdict }> {
  if (earlierVerdict?.features === null) throw untrustedGpu(earlierVerdict, features)
  const adapter = await findAdapter()
  const available = new Set<string>(adapter?.features)
  const sets = earlierVerdict
    ? [earlierVerdict.features.filter((name) => available.has(name))]
    : listFeatureSets(available, adapter !== null && describeAdapter(adapter).software)
  // An available `shader-f16` is part of the sets below. Other features are required in any case.
  const must = features.filter((name) => name !== HALF_FEATURE || !available.has(name))
  let late = false
  for (const [tried, optional] of sets.entries()) {
    if (signal.aborted) throw loadingCancelled()
    const opened = await requestGpu({ features: must, optional }).catch((thrown: unknown) => {
      // A GPU that hung in an earlier self-test may refuse a new device.
      if (tried > 0) throw untrustedGpu({ features: null, late: true }, features)
      throw thrown
    })
    const { device: gpu } = opened
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    let isTrusted = false
    try {
      const sound = earlierVerdict ? true : await passesSelfTest(runtime, gpu, optional)
      late ||= sound === null
      if (!sound) continue
      const verdict = earlierVerdict ?? { features: optional, ...(late && { late }) }
      if (features.includes(HALF_FEATURE) && !optional.includes(HALF_FEATURE))
        throw untrustedGpu(verdict, features)
      isTrusted = true
      return { gpu, runtime, verdict }
    } finally {
      if (!isTrusted) {
        runtime.release()
        gpu.destroy()
      }
    }
  }
  throw untrustedGpu({ features: null, ...(late && { late }) }, features)
}

/** Resolves with `true` if each precision passes, `false` if one fails, `null` after a timeout. */
async function passesSelfTest(
  runtime: Runtime,
  gpu: GPUDevice,
  features: readonly string[],
): Promise<boolean | null> {
  for (const precision of ['float32', 'float16'] as const) {
    if (precision === 'float16' && !features.includes(HALF_FEATURE)) continue
    const passing = computesCorrectly(runtime, gpu, precision)
    const passes = await withTimeout(PRECISION_TIMEOUT_MS, passing, null)
    if (!passes) return passes
  }
  return true
}

function untrustedGpu(verdict: GpuVerdict, features: readonly string[]): InoriginError {
  const names = features.join(', ')
  const only =
    verdict.features === null ? '' : verdict.late ? ` with ${names}` : ` without ${names}`
  const what = verdict.late
    ? `The GPU self-test timed out${only}`
    : `The GPU computes ${only ? `correct numbers only${only}` : 'wrong numbers'}`
  return new InoriginError(
    'unavailable',
    `${what}, so the model cannot use the GPU. Use device: "wasm", or another browser.`,
    { code: 'gpu_untrusted', details: { verdict } },
  )
}
