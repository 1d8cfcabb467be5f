/**
 * Compares the image encoder on the GPU with the CPU, at the first image. In 16 bits, an encoder can
 * compute numbers that are finite and wrong, with kernels that pass the self-test.
 */
import type { GpuComparison } from '../../../device/gpu-verdict.ts'
import { InoriginError } from '../../../error.ts'
import type { RunEncoder } from './encoder.ts'

/** An encoder with the session that it runs on. */
export interface OpenEncoder {
  run: RunEncoder
  release(): Promise<void>
}

interface CheckOptions {
  onGpu: OpenEncoder
  /** Opens the same files on the CPU. */
  openOnCpu(): Promise<OpenEncoder>
  /** Called once with the result. */
  onComparison(comparison: GpuComparison): void
}

/**
 * Largest difference of the rows, relative to their root mean square. It is an estimate between the
 * rounding to 16 bits in all layers and a wrong kernel, and was not tuned on real GPUs.
 */
const TOLERANCE = 0.1

const UNCOMPARABLE = 'the CPU cannot run the image encoder, so its rows were not compared'

/** Creates an encoder that runs on the GPU, or on the CPU if the GPU computes something else. */
export function createCheckedEncoder(options: CheckOptions): RunEncoder {
  const { onGpu, openOnCpu, onComparison } = options
  let chosen: RunEncoder | null = null

  const conclude = (run: RunEncoder, comparison: GpuComparison): void => {
    chosen = run
    onComparison(comparison)
  }

  const compare: RunEncoder = async (inputs, rows) => {
    const ours = await onGpu.run(inputs, rows)
    const reference = await runReference(openOnCpu, (run) => run(inputs, rows))
    if (!reference) {
      conclude(onGpu.run, { agrees: true, why: UNCOMPARABLE, isTransient: true })
      return ours
    }
    const { onCpu, theirs } = reference
    const difference = findDifference(ours, theirs)
    const agrees = difference <= TOLERANCE
    const percent = Number.isFinite(difference) ? `${(difference * 100).toPrecision(2)} %` : 'NaN'
    const why = `the rows of its image encoder differ from those of the CPU by ${percent}`
    await (agrees ? onCpu : onGpu).release()
    conclude((agrees ? onGpu : onCpu).run, { agrees, why })
    return agrees ? ours : theirs
  }

  return (inputs, rows) => (chosen ?? compare)(inputs, rows)
}

/** Resolves with the rows of the CPU; `null` if it cannot compute them. */
async function runReference(
  open: CheckOptions['openOnCpu'],
  encode: (run: RunEncoder) => Promise<Float32Array>,
): Promise<{ onCpu: OpenEncoder; theirs: Float32Array } | null> {
  let onCpu: OpenEncoder | undefined
  try {
    onCpu = await open()
    return { onCpu, theirs: await encode(onCpu.run) }
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    // The runtime cannot be used after these, on either device.
    if (error.code === 'device_lost' || error.code === 'runtime_crashed') throw error
    await onCpu?.release()
    return null
  }
}

/** Returns the root mean square of the differences over that of the reference. */
function findDifference(ours: Float32Array, theirs: Float32Array): number {
  let [apart, size] = [0, 0]
  for (const [index, their] of theirs.entries()) {
    apart += ((ours[index] ?? NaN) - their) ** 2
    size += their ** 2
  }
  return Math.sqrt(apart / (size || 1))
}
