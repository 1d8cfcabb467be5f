/** Runs the graph of a model once, on checked inputs. */
import type { Tensor } from 'onnxruntime-web'
import { gpuRejected } from '../engine/failure.ts'
import type { Ort } from '../engine/onnx/ort.ts'
import type { Session } from '../engine/onnx/runtime.ts'
import { InoriginError } from '../error.ts'
import type { ElementData, ElementType } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { BoundSignature } from './bound.ts'
import type { ParsedInput } from './parse-inputs.ts'
import { findGpuShortage, findInputMismatch } from './runtime-errors.ts'
import type { RawTensor } from './tensor.ts'
import { encodeInput } from './tensor-codec.ts'

/**
 * Resolves with the tensors of the declared outputs by name. Rejects with `invalid_request` if the
 * model rejects the inputs, and with `aborted`.
 */
export async function runGraph(
  ort: Ort,
  session: Session,
  { inputs, outputs }: BoundSignature,
  checked: ReadonlyMap<string, ParsedInput>,
  signal: AbortSignal,
): Promise<Map<string, RawTensor>> {
  const wanted = outputs.map(({ tensor }) => tensor)
  const tensors: Tensor[] = []
  try {
    const feeds: Record<string, Tensor> = {}
    for (const { parameter, tensor, spec } of inputs) {
      const value = checked.get(parameter.name)
      if (!value) continue
      const path = `inputs.${parameter.name}`
      for (const [name, raw] of await encodeInput(value, tensor, spec, path)) {
        tensors.push((feeds[name] = toTensor(ort, raw)))
      }
    }
    assertNotAborted(signal)
    const results = await session.run(feeds, wanted).catch(rethrowRunError)
    tensors.push(...Object.values(results))
    return new Map(
      outputs.map(({ parameter, tensor }) => {
        const result = results[tensor]
        if (!result) throw new InoriginError('internal', `The model returned no ${tensor}.`)
        return [parameter.name, fromTensor(result)]
      }),
    )
  } finally {
    for (const tensor of tensors) tensor.dispose()
  }
}

function toTensor(ort: Ort, { type, data, shape }: RawTensor): Tensor {
  return type === 'string'
    ? new ort.Tensor(type, data as string[], shape)
    : new ort.Tensor(type, data as Exclude<ElementData, string[]>, shape)
}

function fromTensor(tensor: Tensor): RawTensor {
  const type = tensor.type as ElementType
  const data = tensor.data as ElementData
  // The runtime returns a Float16Array where browsers have one. Its bits work everywhere.
  const isHalf = type === 'float16' && !(data instanceof Uint16Array) && ArrayBuffer.isView(data)
  return {
    type,
    data: isHalf ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data,
    shape: tensor.dims,
  }
}

/** Rethrows a runtime error, as `invalid_request` if the model rejected the inputs. */
function rethrowRunError(thrown: unknown): never {
  const error = InoriginError.from(thrown)
  const rejection = error.kind === 'internal' ? findInputMismatch(error.message) : null
  if (rejection !== null)
    throwInvalidInput('inputs', `the model rejected them: ${rejection}`, thrown)
  const shortage = error.kind === 'internal' ? findGpuShortage(error.message) : null
  throw shortage === null ? error : gpuRejected(shortage, thrown)
}

/** Throws `aborted` if the signal has aborted. */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelledError(signal)
}

/** Returns the error of a canceled prediction. */
export function cancelledError(signal: AbortSignal): InoriginError {
  return new InoriginError('aborted', 'The prediction was canceled.', { cause: signal.reason })
}
