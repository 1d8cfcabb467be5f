/** Joins the outputs of the runs of one call. */
import { ARRAYS, countElements, type ElementData, isElementType } from '../values/elements.ts'
import type { BoundOutput, BoundSignature } from './bound.ts'
import type { RawTensor } from './tensor.ts'
import { decodeOutput } from './tensor-codec.ts'

type Run = ReadonlyMap<string, RawTensor>

/**
 * Returns the values by name of the output. Windowed runs give tensors with a first dimension for
 * the windows, or arrays of other values; states have the value after the last run. A session
 * carries its states, so `hidesStates` leaves them out.
 */
export function decodeRuns(
  { outputs, states }: BoundSignature,
  runs: readonly Run[],
  isWindowed: boolean,
  hidesStates: boolean,
): Record<string, unknown> {
  const isState = ({ parameter }: BoundOutput): boolean =>
    states.some(({ output }) => output === parameter.name)
  return Object.fromEntries(
    outputs
      .filter((output) => !hidesStates || !isState(output))
      .map((output) => {
        const tensors = runs.flatMap((run) => run.get(output.parameter.name) ?? [])
        const value =
          isWindowed && !isState(output)
            ? joinWindows(output, tensors)
            : decodeLast(output, tensors)
        return [output.parameter.name, value]
      }),
  )
}

function decodeLast({ parameter, spec }: BoundOutput, tensors: readonly RawTensor[]): unknown {
  const last = tensors.at(-1)
  return last && decodeOutput(parameter, last, spec)
}

function joinWindows(
  { parameter, type, spec }: BoundOutput,
  tensors: readonly RawTensor[],
): unknown {
  const [first] = tensors
  const isSame = tensors.every(({ shape }) => shape.join() === first?.shape.join())
  if (!isElementType(parameter.type) || type === 'string' || spec.steps || !isSame)
    return tensors.map((tensor) => decodeOutput(parameter, tensor, spec))
  const shape = [tensors.length, ...(first?.shape ?? [])]
  const data = new ARRAYS[type](countElements(shape))
  let at = 0
  for (const tensor of tensors) {
    setElements(data, tensor.data, at)
    at += tensor.data.length
  }
  return decodeOutput(parameter, { type, data, shape: shape.length > 1 ? shape : [0, 0] }, spec)
}

/** Copies elements between arrays of the same class. */
function setElements(target: ElementData, source: ElementData, at: number): void {
  if (target instanceof BigInt64Array || target instanceof BigUint64Array) {
    target.set(source as BigInt64Array, at)
  } else if (!Array.isArray(target)) {
    target.set(source as Exclude<typeof target, string[]>, at)
  }
}
