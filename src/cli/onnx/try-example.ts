/** Finds inputs with which a model runs, so that the example code works as it is printed. */
import type { InferenceSession, Tensor, TensorConstructor } from 'onnxruntime-web'
import { isSampleRate } from '../../draft/wishes.ts'
import { isFixedLength } from '../../predictor/tensor.ts'
import { ARRAYS, countElements } from '../../values/elements.ts'

/** Shapes by input or output with which the model ran. */
export type ExampleShapes = ReadonlyMap<string, readonly number[]>

/**
 * Lengths that are tried for free dimensions, from the smallest. They are those of states, of
 * windows of sound at 16 kHz, of images and of a second of sound.
 */
const FREE_LENGTHS = [1, 2, 16, 64, 224, 512, 1_280, 16_000]

type Inputs = InferenceSession['inputMetadata']

/**
 * Runs the model on zeros of growing shapes until it runs. Resolves with these shapes, or with the
 * failure of the smallest ones. The inputs are those that the example code has. Rejects with the
 * reason of the signal, which is read between two runs: a run itself cannot be interrupted.
 */
export async function tryExample(
  session: Pick<InferenceSession, 'inputMetadata' | 'run'>,
  tensor: TensorConstructor,
  signal: AbortSignal,
): Promise<{ shapes: ExampleShapes; outputs: ExampleShapes; failure?: unknown }> {
  const inputs = session.inputMetadata
  const isFree = inputs.some((one) => one.isTensor && one.shape.some(isFreeLength))
  let failure: unknown
  const tries = (isFree ? FREE_LENGTHS : FREE_LENGTHS.slice(0, 1)).flatMap((length) =>
    listShapes(inputs, length),
  )
  for (const shapes of tries) {
    signal.throwIfAborted()
    if ([...shapes.values()].some((shape) => countElements(shape) > MAX_EXAMPLE_ELEMENTS)) continue
    try {
      const outputs = await session.run(toFeeds(inputs, shapes, tensor))
      const returned = new Map(Object.entries(outputs).map(([name, { dims }]) => [name, dims]))
      for (const output of Object.values(outputs)) output.dispose()
      return { shapes, outputs: returned }
    } catch (error) {
      failure ??= error
    }
  }
  return { shapes: new Map(), outputs: new Map(), failure }
}

const isFreeLength = (length: number | string): boolean => !isFixedLength(length) || length <= 0

/**
 * Returns the shapes with this length for all free dimensions, and those with it for the last one of a
 * tensor only: others without a name can be batches, as in the state of a recurrent model.
 */
function listShapes(inputs: Inputs, length: number): Map<string, number[]>[] {
  const all = toShapes(inputs, length, length)
  const last = toShapes(inputs, length, 1)
  const isSame = [...all].every(([name, shape]) => shape.join() === last.get(name)?.join())
  return isSame ? [all] : [all, last]
}

/**
 * Returns the shapes with `length` for free dimensions, except for batches, which are 1. Unnamed ones
 * that are not the last get the length `inner`.
 */
function toShapes(inputs: Inputs, length: number, inner: number): Map<string, number[]> {
  const tensors = inputs.filter((one) => one.isTensor)
  const batches = new Set(
    tensors.flatMap(({ shape }) => (shape.length > 1 ? shape.slice(0, 1) : [])),
  )
  return new Map(
    tensors.map(({ name, shape }) => [
      name,
      shape.map((one, index) => {
        if (!isFreeLength(one)) return Number(one)
        const isNamed = typeof one === 'string' && one !== ''
        const isBatch = isNamed ? batches.has(one) : index === 0
        if (isBatch && shape.length > 1) return 1
        return isNamed || index === shape.length - 1 ? length : inner
      }),
    ]),
  )
}

const toFeeds = (inputs: Inputs, shapes: ExampleShapes, Constructor: TensorConstructor) =>
  Object.fromEntries(
    inputs
      .filter((input) => input.isTensor)
      .map(({ name, type }): [string, Tensor] => {
        const shape = shapes.get(name) ?? []
        const count = countElements(shape)
        if (type === 'string')
          return [name, new Constructor('string', Array<string>(count).fill('text'), shape)]
        const data = isSampleRate(name, type)
          ? createRates(type, count)
          : new ARRAYS[type as keyof typeof ARRAYS](count)
        return [name, new Constructor(type as 'float32', data as Float32Array, shape)]
      }),
  )

const createRates = (type: string, count: number): BigInt64Array | Int32Array =>
  type === 'int64'
    ? new BigInt64Array(count).fill(BigInt(SAMPLE_RATE_HZ))
    : new Int32Array(count).fill(SAMPLE_RATE_HZ)

/** Maximum length of a tensor that the example creates as an array. */
export const MAX_EXAMPLE_ELEMENTS = 2 ** 24

/** Sample rate in the example, which most models of speech expect. */
export const SAMPLE_RATE_HZ = 16_000
