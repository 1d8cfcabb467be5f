/** Runs the graph that turns images into rows of floats. */
import type { Tensor } from 'onnxruntime-web'
import type { GpuComparison } from '../../../device/gpu-verdict.ts'
import { InoriginError } from '../../../error.ts'
import { halfToFloat32, toHalf } from '../../../values/elements.ts'
import type { DecoderLoadOptions } from '../../decoder-engine.ts'
import { modelUnusable } from '../../failure.ts'
import type { GraphFiles } from '../model-files.ts'
import type { Runtime, Session } from '../runtime.ts'
import { product } from '../tensor.ts'
import type { EncoderInput, EncoderInputs } from './family.ts'

/** Function that resolves with the rows of an image, one after the other. */
export type RunEncoder = (inputs: EncoderInputs, rows: number) => Promise<Float32Array>

const OUTPUT = 'image_features'

/** Creates the encoder over a session that the caller releases. */
export function createEncoder({ ort }: Runtime, session: Session): RunEncoder {
  const types = new Map(
    session.inputs.map((input) => [input.name, input.isTensor ? input.type : 'string']),
  )
  const output = session.outputs.find(({ name }) => name === OUTPUT) ?? session.outputs[0]
  if (!output) throw modelUnusable('its image encoder has no output.')

  const toTensor = (name: string, { type, data, dims }: EncoderInput): Tensor =>
    type === 'float' && types.get(name) === 'float16'
      ? new ort.Tensor('float16', Uint16Array.from(data as Float32Array, toHalf), dims)
      : new ort.Tensor(type === 'float' ? 'float32' : type, data, dims)

  return async (inputs, rows) => {
    // Exports leave out inputs that the graph does not use.
    const feeds = Object.fromEntries(
      Object.entries(inputs)
        .filter(([name]) => types.has(name))
        .map(([name, input]) => [name, toTensor(name, input)]),
    )
    const missing = [...types.keys()].find((name) => !(name in feeds))
    if (missing !== undefined)
      throw modelUnusable(`the input ${missing} of its image encoder is not supported.`)
    const results = await session.run(feeds, [output.name])
    const tensor = results[output.name] as Tensor
    const made = product(tensor.dims.slice(0, -1))
    if (made !== rows)
      throw modelUnusable(`its image encoder made ${made} rows; its configuration says ${rows}.`)
    const { data } = tensor
    return tensor.type === 'float16' ? halfToFloat32(data as Uint16Array) : (data as Float32Array)
  }
}

/** An encoder with the session that it runs on. */
export interface OpenEncoder {
  run: RunEncoder
  release(): Promise<void>
}

/**
 * Largest difference of the rows, relative to their root mean square. It is an estimate between the
 * rounding to 16 bits in all layers and a wrong kernel, and was not tuned on real GPUs.
 */
const TOLERANCE = 0.1

const UNCOMPARABLE = 'the CPU cannot run the image encoder, so its rows were not compared'

/**
 * Creates an encoder that runs on the GPU, or on the CPU if the GPU computes something else for the
 * first image. In 16 bits, an encoder can compute numbers that are finite and wrong, with kernels
 * that pass the self-test.
 * `openOnCpu` opens the same files on the CPU. `onComparison` is called once with the result.
 */
export function createCheckedEncoder({
  onGpu,
  openOnCpu,
  onComparison,
}: {
  onGpu: OpenEncoder
  openOnCpu: () => Promise<OpenEncoder>
  onComparison: (comparison: GpuComparison) => void
}): RunEncoder {
  let chosen: RunEncoder | null = null

  const compare: RunEncoder = async (inputs, rows) => {
    const ours = await onGpu.run(inputs, rows)
    const reference = await runReference(openOnCpu, inputs, rows)
    if (!reference) {
      chosen = onGpu.run
      onComparison({ agrees: true, why: UNCOMPARABLE, isTransient: true })
      return ours
    }
    const { onCpu, theirs } = reference
    const difference = findDifference(ours, theirs)
    const agrees = difference <= TOLERANCE
    const percent = Number.isFinite(difference) ? `${(difference * 100).toPrecision(2)} %` : 'NaN'
    const why = `the rows of its image encoder differ from those of the CPU by ${percent}`
    await (agrees ? onCpu : onGpu).release()
    chosen = (agrees ? onGpu : onCpu).run
    onComparison({ agrees, why })
    return agrees ? ours : theirs
  }

  return (inputs, rows) => (chosen ?? compare)(inputs, rows)
}

/** Resolves with the rows of the CPU; `null` if it cannot compute them. */
async function runReference(
  open: () => Promise<OpenEncoder>,
  inputs: EncoderInputs,
  rows: number,
): Promise<{ onCpu: OpenEncoder; theirs: Float32Array } | null> {
  let onCpu: OpenEncoder | undefined
  try {
    onCpu = await open()
    return { onCpu, theirs: await onCpu.run(inputs, rows) }
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

/**
 * Largest size in bytes of an encoder that is opened on the CPU as well, for the time of the
 * comparison. For larger ones, the self-test of the GPU must do.
 */
const MAX_COMPARED_BYTES = 256 * 2 ** 20

/**
 * Opens the encoder on the device that computes it correctly. On a GPU, it is compared with the CPU
 * once, unless the result is known. Sessions are released with the model, unless they were before.
 */
export async function openEncoder(
  runtime: Runtime,
  graph: GraphFiles,
  createSession: (onCpu: boolean) => Promise<Session>,
  { encoderComparison, onEncoderComparison }: DecoderLoadOptions,
): Promise<RunEncoder> {
  const open = async (onCpu: boolean): Promise<OpenEncoder> => {
    const session = await createSession(onCpu)
    return { run: createEncoder(runtime, session), release: () => session.release() }
  }
  if (runtime.device === 'wasm') return (await open(false)).run
  if (encoderComparison?.agrees === false) return (await open(true)).run
  const onGpu = await open(false)
  const bytes = graph.externalData.reduce((sum, { data }) => sum + data.size, graph.model.size)
  if (encoderComparison || !onEncoderComparison || bytes > MAX_COMPARED_BYTES) return onGpu.run
  const openOnCpu = () => open(true)
  return createCheckedEncoder({ onGpu, openOnCpu, onComparison: onEncoderComparison })
}
